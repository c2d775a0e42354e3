import { lchownSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import type { HearthConfiguration } from '../../configuration.ts';

/** The time and place of the last backup. */
export interface LastBackup {
  /** Milliseconds since the epoch when the backup began. */
  readonly createdTs: number;
  /** The directory or address that the backup was written to. */
  readonly target: string;
}

/**
 * Returns the path of the file that notes the last backup. It is in the directory of the media, where the server can
 * write, whatever its database is.
 */
export const lastBackupFile = ({ media }: HearthConfiguration) =>
  join(media.media_store_path, 'last-backup.json');

/**
 * Creates a directory and its missing parents. If root runs the command, all of them are given the owner of the nearest
 * directory that existed, because the server could not use a directory of root.
 */
export function makeDirectoryForServer(directory: string): void {
  const path = resolve(directory);
  const first = mkdirSync(path, { recursive: true, mode: 0o700 });
  if (first === undefined || process.getuid?.() !== 0) return;
  const { uid, gid } = statSync(dirname(first));
  for (let made = path; made.length >= first.length; made = dirname(made)) lchownSync(made, uid, gid);
}

/**
 * Writes a note that a backup is complete, so that `hearth doctor` knows its age. A failure to write the note is reported
 * on standard error only, because the backup itself is complete.
 */
export function noteBackup(configuration: HearthConfiguration, backup: LastBackup): void {
  const file = lastBackupFile(configuration);
  try {
    makeDirectoryForServer(dirname(file));
    // Root follows no symbolic link that the user of the server may have put there.
    rmSync(`${file}.new`, { force: true });
    writeFileSync(`${file}.new`, `${JSON.stringify(backup)}\n`, { mode: 0o644, flag: 'wx' });
    renameSync(`${file}.new`, file);
  } catch (error) {
    process.stderr.write(
      `hearth doctor will not know about this backup: ${error instanceof Error ? error.message : error}\n`,
    );
  }
}

/** Returns the last complete backup that `hearth backup` has noted; `undefined` when there is no readable note. */
export function lastBackup(configuration: HearthConfiguration): LastBackup | undefined {
  try {
    const { createdTs, target } = JSON.parse(readFileSync(lastBackupFile(configuration), 'utf8'));
    return typeof createdTs === 'number' && typeof target === 'string' ? { createdTs, target } : undefined;
  } catch {
    return undefined;
  }
}
