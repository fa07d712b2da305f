"""The attacks, one a line: what is done, which layer answers, in which reduced plan it is seen.

Layers by their initials (see SHORT). `base` is the reduced plan in which the attack must succeed;
plus `layer` alone it must fail. Without it an ordinary caller cannot make other namespaces, so
`U` is added to `base` for that caller where the plan has a namespace at all.
"""
from dataclasses import dataclass, field

SHORT = {
    "U": "user-namespace", "M": "mount-view", "P": "proc", "H": "hide", "R": "protect",
    "D": "pid-namespace", "N": "network-namespace", "I": "ipc-namespace", "T": "uts-namespace",
    "G": "cgroup-namespace", "S": "session", "F": "streams", "E": "environment", "1": "init",
    "L": "limits", "C": "capabilities", "X": "no_new_privs", "K": "landlock", "B": "seccomp",
}
NAMESPACES = set("MDNITGPHR")


@dataclass
class Attack:
    id: str
    argv: str
    layer: str
    base: str = ""
    who: str = "both"  # "user", "root"
    options: tuple = ()
    terminal: bool = False  # a controlling terminal outside
    leak: bool = False  # a descriptor is left open
    # why this host, or this caller, may be unable to show the attack; without it that is a failure
    unless: str = ""
    prefix: str = ""  # how the program is started: other entry points
    never: tuple = ()  # errors that count as a failure in the whole plan
    extra: dict = field(default_factory=dict)

    @property
    def name(self):
        words = [self.id, *self.argv.split()[:3], self.prefix.split("/")[-1].split(" ")[0],
                 *self.options[:1], "by", SHORT[self.layer]]
        return "-".join(w.strip("{}").replace("/", "_").lstrip("-") for w in words if w)

    def plans(self, root):
        """The two reduced plans, as names of layers."""
        base = set(self.base)
        whole = base | {self.layer}
        if not root and self.layer != "U" and whole & (NAMESPACES | {"C", "1"}):
            base, whole = base | {"U"}, whole | {"U"}
        return ([SHORT[x] for x in SHORT if x in base], [SHORT[x] for x in SHORT if x in whole])


PRIVILEGE = "the kernel gives this to the host's root only; root's run shows it"
LOCKED = "mounts are locked for whoever is not the host's root; root's run shows it"
MODULE = "this kernel has no such feature"
HIDE = ("--hide", "{ws}/hidden/key")
HIDE_READ = ("--read", "{shown}", "--hide", "{shown}/key")
PROTECT = ("--protect", "{ws}/kept/file")
SETID = "host setid_program {setid}"
LOADER = "/lib64/ld-linux-x86-64.so.2"
MEMFD = "/usr/bin/python3 {memfd}"


def seccomp(id_, calls, **more):
    return [Attack(id_, f"calls {call}", "B", **more) for call in calls.split()]


ATTACKS = [
    # A. terminal, descriptors, processes
    Attack("HA01", "host tiocsti", "S", "F", terminal=True),
    Attack("HA01", "host tiocsti", "B", "F", terminal=True),
    Attack("HA01", "host tiocsti", "S", "F", terminal=True, options=("--stdin",)),
    Attack("HA01", "host tiocsti_upper", "B", "F", terminal=True),
    Attack("HA03", "host tty_write /dev/tty", "S", "F", terminal=True),
    Attack("HA03", "host tty_write {pts}", "M", "F", terminal=True),
    Attack("HA03", "host devpts {devpts}", "M", "F"),
    Attack("HA04", "host fd {leak}", "F", leak=True),
    Attack("HA04", "host fds", "F", leak=True),
    Attack("HA06", "host read_text /proc/1/environ decoy-value", "1", "MD"),
    Attack("HA07", "host read_text /proc/{pid}/environ decoy-value", "U"),
    Attack("HA07", "host read /proc/{pid}/cmdline", "D", "M"),
    Attack("HA07", "host variable BAWN_DECOY", "E"),
    Attack("HA08", "host read /proc/{pid}/root{out}/secret", "U"),
    Attack("HA08", "host read /proc/{pid}/cwd/secret", "U"),
    Attack("HA08", "host read /proc/{pid}/fd/{fd}", "U"),
    Attack("HA08", "host list /proc/{pid}/fd", "D", "M"),
    Attack("HA08", "host stat /proc/{pid}", "D", "M"),
    Attack("HA09", "host write {program}", "M", never=("ETXTBSY",)),
    Attack("HA10", "host ptrace {pid}", "U"),
    Attack("HA10", "host ptrace {pid}", "B"),
    Attack("HA10", "host vm_read {pid}", "U"),
    Attack("HA10", "host vm_read {pid}", "B"),
    Attack("HA10", "host getfd {pid} {fd}", "U"),
    Attack("HA10", "host getfd {pid} {fd}", "B"),
    Attack("HA10", "host prlimit {pid}", "D"),
    Attack("HA11", "host kill {pid} 0", "D"),
    Attack("HA11", "host kill {pid} 18", "D"),
    Attack("HA11", "host kill {pid} 0", "K"),
    # B. what does not need a foreign root file system
    Attack("HB09", "host capabilities", "C", who="root"),
    Attack("HB13", "calls mount", "C", "M", who="root"),
    Attack("HB13", "calls fsopen", "C", who="root"),
    Attack("HB13", "calls open_tree", "C", "M", who="root"),
    Attack("HB13", "calls mount", "B", "M", who="root"),
    Attack("HB13", "calls fsopen", "B", who="root"),
    Attack("HB13", "calls open_tree", "B", "M", who="root"),
    Attack("HB13", "calls fsopen", "U", who="root"),
    # C. paths
    Attack("HC05", "host read {ws}/hidden/key", "H", "M", options=HIDE),
    Attack("HC05", "host symlink_read {ws}/hidden/key {ws}/soft", "H", "M", options=HIDE),
    Attack("HC05", "host link_read {ws}/hidden/key {ws}/hard", "H", "M", options=HIDE),
    Attack("HC05", "host read /proc/self/cwd/hidden/../hidden/key", "H", "M", options=HIDE),
    Attack("HC05", "host read {shown}/key", "H", "M", options=HIDE_READ),
    Attack("HC05", "host stat {shown}/key", "H", "M", options=HIDE_READ),
    Attack("HC06", "host rename {ws}/hidden/key {ws}/moved", "H", "M", options=HIDE),
    Attack("HC06", "host move_parent {ws}/hidden {ws}/aside key", "H", "M", options=HIDE),
    Attack("HC06", "host exchange {ws}/hidden/key {ws}/plain", "H", "M", options=HIDE),
    Attack("HC06", "host read {ws}/dir/inner", "H", "M", options=("--hide", "{ws}/dir")),
    Attack("HC06", "host move_parent {ws}/dir {ws}/dir2 inner", "H", "M",
           options=("--hide", "{ws}/dir")),
    Attack("HC12", "calls by_handle {ws}", "C", who="root"),
    Attack("HC12", "calls by_handle {ws}", "B", who="root"),
    Attack("HC12", "calls by_handle {ws}", "B", who="user", unless=PRIVILEGE),
    Attack("HC13", "host remount /usr 0", "C", "M", who="root"),
    Attack("HC13", "host remount /usr 0", "U", "M", who="root"),
    Attack("HC13", "host remount /usr 0", "B", "M", who="root"),
    Attack("HC13", "host unmount {ws}/hidden/key 0", "C", "MH", who="root", options=HIDE),
    Attack("HC13", "host unmount {ws}/hidden/key 0", "U", "MH", who="root", options=HIDE),
    Attack("HC13", "host unmount {ws}/hidden/key 0", "B", "MH", who="root", options=HIDE),
    Attack("HC13", "host bind_over {ws}/hidden 0", "C", "M", who="root"),
    Attack("HC13", "host bind_over {ws}/hidden 1", "B", "M"),
    Attack("HC13", "host bind_over {ws}/hidden 1", "K", "M"),
    Attack("HC13", "host remount /usr 1", "B", "M", unless=LOCKED),
    Attack("HC13", "host unmount {ws}/hidden/key 1", "B", "MH", options=HIDE, unless=LOCKED),
    Attack("HC15", "host stat {out}/secret", "M", "K"),
    Attack("HC15", "host chmod {out}/secret", "M", "K"),
    Attack("HC15", "host touch {out}/secret", "M", "K"),
    Attack("HC15", "host setxattr {out}/secret", "M", "K"),
    Attack("HC15", "host read {out}/secret", "M"),
    Attack("HC15", "host read {out}/secret", "K"),
    Attack("HC15", "host write {out}/secret", "K"),
    Attack("HC15", "host list {out}", "M", "K"),
    Attack("HC15", "host read /run/bawn/canary", "K", "M"),
    Attack("HC15", "host make {out}/made", "M"),
    Attack("HC15", "host make {out}/made", "K"),
    # protect: the layer's own attacks; what it does not cover, test_HC01 and its kin show
    Attack("protect", "host write {ws}/kept/file", "R", "M", options=PROTECT),
    Attack("protect", "host unlink {ws}/kept/file", "R", "M", options=PROTECT),
    Attack("protect", "host rename {ws}/plain {ws}/kept/file", "R", "M", options=PROTECT),
    Attack("protect", "host exchange {ws}/plain {ws}/kept/file", "R", "M", options=PROTECT),
    Attack("protect", "host rename {ws}/kept {ws}/kept2", "R", "M", options=PROTECT),
    Attack("protect", "host truncate {ws}/kept/file", "R", "M", options=PROTECT),
    Attack("protect", "host chmod {ws}/kept/file", "R", "M", options=PROTECT),
    Attack("protect", "host setxattr {ws}/kept/file", "R", "M", options=PROTECT),
    # without an option: a git directory, and what leads to another
    Attack("protect", "host rename {ws}/.git {ws}/aside", "R", "M"),
    Attack("protect", "host exchange {ws}/dir {ws}/.git", "R", "M"),
    Attack("protect", "host rename {ws}/vendor {ws}/aside", "R", "M"),
    Attack("protect", "host unlink {ws}/vendor/.git", "R", "M"),
    Attack("protect", "host rename {ws}/plain {ws}/vendor/.git", "R", "M"),
    Attack("protect", "host write {ws}/vendor/.git", "R", "M"),
    # E. system calls
    *seccomp("HE01", "io_uring io_uring_register"),
    *seccomp("HE02", "int80", unless="this kernel runs no i386 calls"),
    *seccomp("HE02", "x32", unless="this kernel runs no x32 calls"),
    *seccomp("HE04", "alg", unless=MODULE),
    *seccomp("HE05", "unshare_user unshare_user_net clone_user clone3_user setns "
                     "clone_parent"),
    *seccomp("HE05", "unshare_upper", unless="the kernel refuses unknown flags"),
    *seccomp("HE05", "netlink_generic netlink_uevent netlink_diag"),
    *seccomp("HE05", "netfilter netlink_audit netlink_xfrm", unless=MODULE),
    *seccomp("HE06", "userfaultfd keyctl_session keyctl_user add_key request_key mptcp "
                     "socketpair"),
    *seccomp("HE06", "vsock key udplite ping", unless=MODULE),
    *seccomp("HE06", "bpf perf packet packet_old raw xdp", who="root"),
    *seccomp("HE06", "bpf perf packet packet_old raw xdp", who="user", unless=PRIVILEGE),
    Attack("HE06", "calls packet", "C", who="root"),
    Attack("HE06", "calls raw", "C", who="root"),
    Attack("HE06", "calls bpf", "C", who="root"),
    Attack("HE06", "calls packet", "U", who="root"),
    Attack("HE06", "host lo_down", "C", "N", who="root"),
    Attack("HE06", "host lo_down", "U", "N", who="root"),
    *seccomp("HE07", "docker"),
    *seccomp("HE08", "rewrite", options=("--allow-ptrace",)),
    *seccomp("HE08", "rewrite ptrace_child vm_read_child getfd_child"),
    Attack("HE10", "calls --thread userfaultfd", "B"),
    Attack("HE10", "calls --thread thread_filter", "B"),
    Attack("HE11", "calls setflags {ws}/plain", "B"),
    Attack("HE11", "calls fssetxattr {ws}/plain", "B"),
    *seccomp("HE11", "device_node", who="root"),
    Attack("HE11", "calls setversion {ws}/plain", "B"),
    *seccomp("HE11", "whiteout whiteout_rename subvolume"),
    Attack("HE11", "calls device_node", "C", who="root"),
    *seccomp("HE12", "round_robin round_robin_attr io_realtime", who="root"),
    *seccomp("HE12", "round_robin round_robin_attr io_realtime", who="user", unless=PRIVILEGE),
    Attack("HE12", "calls nice", "C", who="root"),
    Attack("HE12", "calls mlock", "C", who="root"),
    Attack("HE13", SETID, "X"),
    Attack("HE13", SETID, "U"),
    Attack("HE13", SETID, "M", who="root"),
    *[Attack("HE13", f"calls setid {way}", "B") for way in range(13)],
    Attack("HE13", "calls setid_directory", "B"),
    Attack("HE13", "calls file_capability", "C", who="root"),
    Attack("HE14", "calls unshare_user", "B", prefix=LOADER),
    Attack("HE14", "host read {out}/secret", "M", prefix=LOADER),
    Attack("HE14", "host read {out}/secret", "K", prefix=LOADER),
    Attack("HE14", "calls unshare_user", "B", prefix=MEMFD),
    Attack("HE14", "host read {out}/secret", "M", prefix=MEMFD),
    # F. host objects
    Attack("HF01", "host abstract {abstract}", "N"),
    Attack("HF01", "host abstract {abstract}", "K"),
    Attack("HF02", "host unix {out}/socket", "M"),
    Attack("HF04", "host shm {key}", "I"),
    Attack("HF04", "host msg {key}", "I"),
    Attack("HF04", "host sem {key}", "I"),
    Attack("HF04", "host mq {queue}", "I"),
    Attack("HF04", "host posix_shm {shm}", "M"),
    *seccomp("HF05", "keyctl_session keyctl_user request_key add_key"),
    Attack("HF06", "host write_any /sys/fs/cgroup", "M", who="root"),
    Attack("HF06", "host list /sys/fs/cgroup", "M", who="user"),
    Attack("HF06", "host cgroup", "G", "M", unless="the caller is at the root of every hierarchy"),
    Attack("HF06", "host mount_cgroup", "G", "UMD", options=("--nested-userns",),
           unless="no control group here is the caller's own"),
    Attack("HF07", "host write_any /proc/sys", "P", "MD", who="root"),
    Attack("HF07", "host write /proc/sys/kernel/core_pattern", "U", "MD", who="root"),
    Attack("HF07", "host write /proc/sys/kernel/core_pattern", "P", "MD", who="root"),
    Attack("HF07", "host write /proc/sysrq-trigger", "P", "MD", who="root", unless=MODULE),
    Attack("HF07", "host write_any /sys", "M", who="root"),
    Attack("HF07", "host write /dev/kmsg", "M", who="root"),
    Attack("HF07", "host list /sys", "M"),
    Attack("HF07", "host list /var/lib", "M"),
    Attack("HF08", "host read /proc/kallsyms", "P", "MD"),
    Attack("HF08", "host read /proc/keys", "P", "MD", unless="the caller sees no key"),
    Attack("HF08", "host read /proc/config.gz", "P", "MD", unless=MODULE),
    Attack("HF08", "host read /proc/cmdline", "P", "MD"),
    Attack("HF08", "host read /proc/timer_list", "U", "MD", who="root"),
    Attack("HF08", "host hostname {hostname}", "T"),
    Attack("HF08", "host read_text /etc/passwd daemon:", "M"),
    Attack("HF08", "host list /sys/class/net", "M"),
    Attack("HF08", "host list /sys/devices", "M"),
    Attack("HF08", "host read /var/lib/dpkg/status", "M"),
    *seccomp("HF09", "clock_settime settimeofday"),
    *seccomp("HF09", "adjtimex", who="root"),
    *seccomp("HF09", "adjtimex", who="user", unless=PRIVILEGE),
    Attack("HF10", "host map_others", "B", who="root"),
    Attack("HF10", "host map_others", "C", who="root"),
    Attack("HF10", "host chown {ws}/plain 12345", "C", who="root"),
    Attack("HF10", "host chown {ws}/plain 12345", "U", who="root"),
    Attack("HF11", "host tcp 127.0.0.1 {port}", "N"),
    Attack("HF11", "host list {state}", "M"),
    Attack("limits", "host core", "L", unless="the hard limit of core dumps is 0 here"),
    Attack("names", "host sethostname", "C", "T", who="root"),
]

# What an old ABI of Landlock lacks, from which ABI on Landlock answers itself, and the layer
# that answers where it does not.
LACKS = [
    ("host truncate {out}/secret", 3, "M"),
    ("host truncate_open {out}/secret", 1, "M"),
    ("host abstract {abstract}", 6, "N"),
    ("host kill {pid} 0", 6, "D"),
    ("host tiocsti", 99, "S"),
    ("host tiocsti", 99, "B"),
    ("host read {out}/secret", 1, "M"),
    ("host stat {out}/secret", 99, "M"),
    ("host unix {out}/socket", 99, "M"),
]

PENDING = {
    "HB04": "there is no foreign root file system in this tier: its root is an empty tmpfs of "
            "bawn's own; it comes with container images",
    "HB08": "no privileged helper is there to be asked; a task is joined by a socket in its "
            "owner's own directory, which asks the kernel who calls (tests/unit/test_control.c)",
    "HK01": "bawn unpacks no layer of an image; it comes with container images",
    "HK02": "bawn unpacks no layer of an image; it comes with container images",
    "HK03": "bawn unpacks no layer of an image; it comes with container images",
}

PARTLY = {
    "HC05": "a hidden or protected directory is not searched for files with a second hard link "
            "elsewhere in the workspace; a file named by itself is",
    "HC09": "directories that fold case are few; each spelling is taken for the name in "
            "every directory",
    "HD10": "in a layer the directories that lead to a hidden name are listed inside, also where "
            "the host has none; git sees nothing of them, and they do not come",
    "HF02": "what a host's process listens on inside of the workspace can be reached unless it is "
            "hidden",
    "HF09": "here the clock alone; a change that keeps size and time is seen by its ctime "
            "(tests/run/test_changes.py)",
    "HM05": "the diagnosis is tried with the kernel's answers alone (tests/unit/"
            "test_diagnosis.c): no kernel with AppArmor is there to load the profile into",
}

# Parts of rows that test_lifetime.py cannot show.
LIFETIME_PENDING = {
    "HG09 a file system that hangs (FUSE, NFS)": "a process that sleeps in the kernel for good "
                                                 "needs a file system of the host that does not "
                                                 "answer; mounting one takes rights on the host",
}
