import { mkdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { selectedDatabases } from '../../../test/support/databases/databases.ts';
import { assertFound, doctorSubject } from './test/doctor-subject.ts';

const day = 24 * 60 * 60 * 1_000;
const GiB = 1024 ** 3;

for (const database of selectedDatabases(import.meta.url)) {
  describe(`hearth doctor on ${database}`, () => {
    const subject = doctorSubject(database);
    const { findings, mark } = subject;

    describe('checks of the machine', () => {
      it('reports a clock that differs from the clock of a key server', async (context) => {
        context.after(() => {
          subject.network.otherClock = 0;
          subject.network.closed.clear();
        });
        subject.network.otherClock = 20_000;
        assertFound(
          await findings(),
          'clock',
          'warning',
          /(19|20|21) seconds behind that of keys\.example/,
          /timedatectl/,
        );
        subject.network.otherClock = -600_000;
        assertFound(await findings(), 'clock', 'error', /ahead of that of keys\.example/, /timedatectl/);
        subject.network.closed.add('keys.example:443');
        assertFound(await findings(), 'clock-unknown', 'note', /No other server of trusted_key_servers/);
      });

      it('reports little disk space, few free inodes, little memory, and a low limit of open files', async () => {
        const space = (free: number, freeInodes: number) => async () => ({
          free,
          total: 100 * GiB,
          freeInodes,
        });
        assertFound(
          await findings({ machine: { space: space(GiB, 0.01) } }),
          'disk-space',
          'warning',
          /1\.0 GiB of 100\.0 GiB/,
          /du -xh/,
        );
        assertFound(
          await findings({ machine: { space: space(GiB, 0.01) } }),
          'disk-inodes',
          'warning',
          /inodes/,
          /df -i/,
        );
        assertFound(
          await findings({ machine: { space: space(1_000, 1) } }),
          'disk-full',
          'error',
          /rejects messages/,
          /purge-remote/,
        );
        assertFound(
          await findings({ machine: { memory: () => GiB / 2 } }),
          'memory',
          'warning',
          /512 MiB/,
          /global_factor: 0\.4/,
        );
        assertFound(
          await findings({ machine: { maxOpenFiles: () => 1_024 } }),
          'open-files',
          'warning',
          /1024/,
          /LimitNOFILE/,
        );
        const inputs = { options: { soft_file_limit: 2_048 }, machine: { maxOpenFiles: () => 1_024 } };
        assertFound(await findings(inputs), 'open-files', 'error', /soft_file_limit is 2048/, /LimitNOFILE/);
      });

      it('reports a directory in which this user may not write', async () => {
        assertFound(
          // The kernel lets no user write there, not even root.
          await findings({ options: { media_store_path: '/proc/sys/media' } }),
          'directory-not-writable',
          'error',
          /^Media \(\/proc\/sys\/media\): the user of this command may not write in \/proc\/sys \(EACCES\)\.$/,
          /^run this command as the user of the server/,
        );
      });

      it('reports an old backup and a missing file of --backup-mark, and finds backups of hearth backup', async () => {
        const weekAgo = new Date(Date.now() - 8 * day);
        utimesSync(mark(), weekAgo, weekAgo);
        assertFound(await findings(), 'backup-old', 'warning', /8 days old/, /npm run hearth -- backup/);
        assertFound(
          await findings({ backupMark: join(subject.folder, 'none') }),
          'backup-mark',
          'error',
          /does not exist/,
        );
        mkdirSync(join(subject.folder, 'media'), { recursive: true });
        const noted = join(subject.folder, 'media', 'last-backup.json');
        writeFileSync(noted, JSON.stringify({ createdTs: Date.now() - day, target: '/mnt/backup' }));
        assertFound(await findings(), 'backup', 'ok', /\/mnt\/backup\) is 24 hours old/);
        writeFileSync(noted, JSON.stringify({ createdTs: Date.now() - 3_600_000, target: '/mnt/backup' }));
        assertFound(await findings(), 'backup', 'ok', /\/mnt\/backup\) is 1 hour old/);
        rmSync(noted);
        utimesSync(mark(), new Date(), new Date());
      });
    });
  });
}
