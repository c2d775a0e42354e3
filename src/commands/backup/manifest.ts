import { existsSync, readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { CommandFailure } from '../failure.ts';

/**
 * The file that lists the contents of a backup; written last, so that a directory without it is not a
 * complete backup.
 */
export const manifestName = 'backup.json';

const fileShape = Type.Object({
  /** Path relative to the directory of the backup, with `/` between its parts. */
  path: Type.String(),
  /** Bytes. */
  size: Type.Number(),
  /** In hexadecimal. */
  sha256: Type.String(),
});

export const manifestShape = Type.Object({
  /** Increases when older versions of Hearth could not restore the backup. */
  format: Type.Union([Type.Literal(1), Type.Literal(2)]),
  /**
   * Milliseconds since the epoch when the backup began. The backup has everything that the server acknowledged before
   * this time.
   */
  createdTs: Type.Number(),
  /** Version of Hearth. */
  version: Type.String(),
  serverName: Type.String(),
  database: Type.Object({
    kind: Type.Union([Type.Literal('sqlite'), Type.Literal('postgres')]),
    /** Below the directory of the backup: a SQLite file, or an archive of `pg_dump`, which may be a directory. */
    path: Type.String(),
    /** The archive of the database of state groups; absent when the main database has them. */
    statePath: Type.Optional(Type.String()),
  }),
  /** Absolute paths that were given with `-c`. */
  configuration: Type.Array(Type.String()),
  /** Absolute paths of the files of the configuration: its documents, keys, secrets and templates. */
  configurationFiles: Type.Array(Type.String()),
  /** Absolute path of the signing key; null when the configuration names none. */
  signingKey: Type.Union([Type.String(), Type.Null()]),
  /** All files of the backup except this one. */
  files: Type.Array(fileShape),
});

const validManifest = Compile(manifestShape);

/** One file of a backup. */
export type BackupFile = Type.Static<typeof fileShape>;
export type BackupManifest = Type.Static<typeof manifestShape>;

/** Paths below the directory of a backup. */
export const backupPaths = {
  sqlite: 'database/homeserver.db',
  postgres: 'database/postgresql.dump',
  /** A directory with a file for each table. */
  postgresFilePerTable: 'database/postgresql',
  state: 'database/postgresql-state.dump',
  /** A directory with a file for each table. */
  stateFilePerTable: 'database/postgresql-state',
  /** Followed by the path of a file below `local` in the media directory. */
  media: 'media/local/',
  /** Followed by the absolute path of the file, without its first slash. */
  configuration: 'configuration/',
} as const;

/** Returns the path of a file of the configuration in a backup. */
export const configurationPath = (file: string): string =>
  backupPaths.configuration + file.replace(/^\/+/, '');

/** Returns 1 for a backup of one database, which older versions of Hearth can restore, and 2 for one of two databases. */
export const formatOf = ({ statePath }: BackupManifest['database']): 1 | 2 =>
  statePath === undefined ? 1 : 2;

/** Whether the directory has a complete backup. */
export const hasManifest = (directory: string): boolean => existsSync(join(directory, manifestName));

export async function writeManifest(directory: string, manifest: BackupManifest): Promise<void> {
  const file = await open(join(directory, manifestName), 'wx', 0o600);
  try {
    await file.writeFile(`${JSON.stringify(manifest, null, 1)}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
}

/** @throws CommandFailure when the directory is not a complete backup that this version understands */
export function readManifest(directory: string): BackupManifest {
  const manifest = parse(join(directory, manifestName), directory);
  const format = (manifest as { format?: unknown } | null)?.format;
  if (typeof format === 'number' && format > 2) {
    throw new CommandFailure(
      `the backup ${directory} was made by a newer version of Hearth: restore it with that version`,
    );
  }
  if (!validManifest.Check(manifest)) throw new CommandFailure(`${join(directory, manifestName)} is damaged`);
  const stray = manifest.files.find(({ path }) => path.startsWith('/') || path.split('/').includes('..'));
  if (stray) throw new CommandFailure(`${join(directory, manifestName)} names a file outside of the backup`);
  return manifest;
}

function parse(file: string, directory: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    const isMissing = (error as NodeJS.ErrnoException).code === 'ENOENT';
    throw new CommandFailure(
      isMissing
        ? `${directory} is not a complete backup: it has no ${manifestName}`
        : `${file} cannot be read: ${error instanceof Error ? error.message : error}`,
    );
  }
}
