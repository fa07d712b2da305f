#!/bin/bash
# Everyday work with git in the repository $WORK, of two commits on main; ends at the first failure.
set -e
cd "$WORK"
git config --global protocol.file.allow always
git status --short
git diff --stat
echo new > n; git add n
git commit -qm three
git log --oneline | grep -q three
git show --stat HEAD | grep -q n
git branch topic
git branch --list | grep -q topic
git switch -q topic
echo topic >> g; git commit -qam topic
git switch -q -
git merge -q --no-edit topic
git checkout -q -b side HEAD~1
echo side > s; git add s; git commit -qm side
git rebase -q topic
git checkout -q -b picked HEAD~1
git cherry-pick side > /dev/null
git revert --no-edit HEAD > /dev/null
git merge -q --no-ff --no-edit side
echo dirty >> f; git stash -q; git stash list | grep -q .; git stash pop -q
git restore f
git tag light; git tag -a -m noted noted; git tag -d light > /dev/null
git describe | grep -q noted
git reset -q --soft HEAD~1; git reset -q --hard
git rm -q n; git mv g h; git commit -qm moved
touch junk; git clean -fdq; test ! -e junk
git blame f > /dev/null; git grep -q topic
git clone -q --bare . /tmp/bare.git
git remote add away /tmp/bare.git
git fetch -q away
git branch -q --track tracked away/side
git push -q -u away HEAD:refs/heads/pushed
git pull -q --ff-only away pushed
git branch -m tracked renamed; git branch -D renamed > /dev/null
git remote rename away far; git remote remove far
git config some.key value; test "$(git config some.key)" = value
git config --unset some.key
git reflog | grep -q .
git notes add -m note; git notes show | grep -q note
git bisect start -q HEAD HEAD~2 > /dev/null; git bisect reset 2> /dev/null
git rev-parse --verify -q HEAD > /dev/null; git fsck --no-progress > /dev/null 2>&1
git worktree add -q tree -b in-tree; (cd tree; echo t > t; git add t; git commit -qm t)
git worktree remove tree
git clone -q /tmp/bare.git /tmp/lib
git submodule --quiet add /tmp/lib added 2> /dev/null || git submodule add /tmp/lib added
git commit -qm added; git submodule --quiet update --init; git submodule status | grep -q added
(cd added; echo a > a; git add a; git commit -qm a); git add added; git commit -qm bump
git sparse-checkout set --no-cone '/*' ; git sparse-checkout disable
printf '#!/bin/sh\ntouch hooked\n' > "$(git rev-parse --git-path hooks/pre-commit)"
chmod +x "$(git rev-parse --git-path hooks/pre-commit)"
echo last >> f; git commit -qam last; test -e hooked; rm hooked
git gc -q
git status --short
git fsck --no-progress > /dev/null 2>&1
