#!/bin/sh
# Called by mmdebstrap when all packages are installed below $1, before the disk is made of it:
# makes a kernel and an initrd for QEMU, the user `herd`, and the service that runs the job.
set -eu
root=$1

# The kernel is unpacked, not installed: its package wants initramfs-tools, whose initrd takes
# longer to build and to boot than all the rest. The cloud kernel has ext4 built in and is quick to
# unpack; its virtio drivers are modules, which is all that our initrd is for.
download=$root/download
mkdir "$download"
(
  cd "$download"
  export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"
  kernel=$(apt-cache depends linux-image-cloud-amd64 |
    awk '/Depends: linux-image-/ && !found++ { print $2 }')
  apt-get -qq -o APT::Sandbox::User=root download "$kernel" busybox-static
  for deb in *.deb; do dpkg-deb -x "$deb" .; done
)
cp "$download"/boot/vmlinuz-* "$root/boot/vmlinuz"
initrd=$download/initrd
mkdir -p "$initrd/bin" "$initrd/dev" "$initrd/root" "$initrd/modules"
cp "$download/bin/busybox" "$initrd/bin/busybox"
modules="virtio virtio_ring virtio_pci_legacy_dev virtio_pci_modern_dev virtio_pci virtio_mmio \
  virtio_blk virtio_console unix_diag"
for module in $modules; do
  find "$download/lib/modules" -name "$module.ko" -exec cp {} "$initrd/modules/" \;
done
cat >"$initrd/init" <<INIT
#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev
for module in $modules; do /bin/busybox insmod /modules/\$module.ko; done
/bin/busybox mount -t ext4 -o noatime /dev/vda /root
/bin/busybox mount -o move /dev /root/dev
exec /bin/busybox switch_root /root /sbin/init
INIT
chmod 755 "$initrd/init"
(cd "$initrd" && find . | ./bin/busybox cpio --quiet -o -H newc) >"$root/boot/initrd"

# For `modprobe zram`, which a fresh Debian needs before zramctl works.
(
  cd "$download"
  for module in zram zsmalloc lz4 lz4_compress lzo lzo-rle; do
    find lib/modules \( -name "$module.ko" -o -name 'modules.*' \) -exec cp --parents {} "$root" \;
  done
)
chroot "$root" depmod "$(ls "$root/lib/modules")"
rm -rf "$download"

# The ordinary user. Linger: the user manager runs from boot on, without a login, as on a server.
chroot "$root" useradd --create-home --uid 1000 --user-group --shell /bin/bash herd
mkdir -p "$root/var/lib/systemd/linger"
touch "$root/var/lib/systemd/linger/herd"
# As in cloud images: the doctor's commands have sudo where they need it.
echo 'herd ALL=(ALL) NOPASSWD: ALL' >"$root/etc/sudoers.d/herd"

# A machine that has an id is not booting for the first time: no presets, no first-boot services.
echo 5eed5eed5eed5eed5eed5eed5eed5eed >"$root/etc/machine-id"
echo vm >"$root/etc/hostname"
echo '127.0.0.1 localhost vm' >"$root/etc/hosts"
: >"$root/etc/fstab"

# The job comes on the second disk, as a tar; what is in it at run/job/start is the program to run.
cat >"$root/etc/systemd/system/job-unpack.service" <<'UNIT'
[Unit]
Description=Unpack the job
DefaultDependencies=no
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/tar -x -f /dev/vdb -C /
UNIT
cat >"$root/etc/systemd/system/job.service" <<'UNIT'
[Unit]
Description=Run the job
Requires=job-unpack.service user@1000.service
Wants=dbus.service systemd-logind.service systemd-user-sessions.service
After=job-unpack.service user@1000.service
After=dbus.service systemd-logind.service systemd-user-sessions.service
# The disk is thrown away: nothing needs to be stopped in order.
SuccessAction=poweroff-immediate
FailureAction=poweroff-immediate
[Service]
ExecStart=/run/job/start
StandardOutput=journal+console
OOMScoreAdjust=-1000
UNIT
cat >"$root/etc/systemd/system/job.target" <<'UNIT'
[Unit]
Description=Boot only what a user manager needs
Requires=basic.target job.service
After=basic.target
UNIT
ln -s job.target "$root/etc/systemd/system/default.target"

# Without a processor's help every process started costs 30 ms and more: leave out what no test
# looks at.
for unit in getty.target cryptsetup.target integritysetup.target veritysetup.target \
  remote-fs.target timers.target dev-hugepages.mount dev-mqueue.mount \
  proc-sys-fs-binfmt_misc.automount sys-fs-fuse-connections.mount sys-kernel-config.mount \
  sys-kernel-debug.mount sys-kernel-tracing.mount kmod-static-nodes.service modprobe@.service \
  systemd-ask-password-console.path systemd-ask-password-wall.path systemd-binfmt.service \
  systemd-firstboot.service systemd-initctl.socket systemd-journal-flush.service \
  systemd-journald-audit.socket systemd-machine-id-commit.service systemd-modules-load.service \
  systemd-pcrphase-sysinit.service systemd-pcrphase.service systemd-pstore.service \
  systemd-random-seed.service systemd-remount-fs.service systemd-repart.service \
  systemd-sysctl.service systemd-sysusers.service systemd-update-utmp.service \
  systemd-tmpfiles-setup-dev.service; do
  ln -sf /dev/null "$root/etc/systemd/system/$unit"
done
mkdir -p "$root/etc/systemd/system-generators"
for generator in "$root"/lib/systemd/system-generators/*; do
  ln -s /dev/null "$root/etc/systemd/system-generators/${generator##*/}"
done
mkdir -p "$root/etc/systemd/journald.conf.d"
printf '[Journal]\nStorage=volatile\n' >"$root/etc/systemd/journald.conf.d/vm.conf"

rm -rf "$root"/var/lib/apt/lists/* "$root"/var/cache/apt/*
