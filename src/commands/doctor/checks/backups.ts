import { statSync } from 'node:fs';
import { ownCommand } from '../../../kernel/process/index.ts';
import { lastBackup } from '../../backup/last-backup.ts';
import { type Examination, flagsOf } from '../examination.ts';
import { error, type Finding, ok, warning } from '../finding.ts';

const hour = 60 * 60 * 1_000;
const day = 24 * hour;

/** Days after which a backup is old. */
const maxDays = 7;

/**
 * Reports the age of the last backup. `hearth backup` has made it, or another tool that changes the file of
 * `--backup-mark` after each backup.
 */
export function checkBackups(examination: Examination): readonly Finding[] {
  const { backupMark, configuration, clock } = examination;
  const fix = `${ownCommand} backup DIRECTORY${flagsOf(examination)}; if another tool makes backups, name a file that it changes each time: ${ownCommand} doctor --backup-mark FILE`;
  let last = lastBackup(configuration);
  if (backupMark !== undefined) {
    const marked = statSync(backupMark, { throwIfNoEntry: false });
    if (marked === undefined) return [error('backup-mark', `${backupMark} does not exist.`, fix)];
    if (last === undefined || marked.mtimeMs > last.createdTs) {
      last = { createdTs: marked.mtimeMs, target: backupMark };
    }
  }
  if (last === undefined) return [warning('backup-none', 'No backup is known.', fix)];
  const age = clock.now() - last.createdTs;
  const text = `The last backup (${last.target}) is ${ageText(age)} old.`;
  return [age > maxDays * day ? warning('backup-old', text, fix) : ok('backup', text)];
}

/** Returns an age in hours below two days, and in days from then on. */
function ageText(age: number): string {
  if (age >= 2 * day) return `${Math.floor(age / day)} days`;
  const hours = Math.max(0, Math.floor(age / hour));
  return hours === 1 ? '1 hour' : `${hours} hours`;
}
