import { readFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { Type } from 'typebox';
import { Compile } from 'typebox/compile';
import { CommandFailure } from '../failure.ts';

/** The list of what a backup contains; written last, so that a directory without it is not a complete backup. */
const manifestName = 'backup.json';

const fileShape = Type.Object({
  /** Path below the directory of the backup, with `/`. */
  path: Type.String(),
  /** Bytes. */
  size: Type.Number(),
  /** In hexadecimal. */
  sha256: Type.String(),
});

const manifestShape = Type.Object({
  /** Increases when older versions of Hearth could not restore the backup. */
  format: Type.Literal(1),
  /** Milliseconds since the epoch when the backup began: it has everything that was acknowledged before. */
  createdTs: Type.Number(),
  /** Version of Hearth. */
  version: Type.String(),
  serverName: Type.String(),
  database: Type.Object({
    kind: Type.Union([Type.Literal('sqlite'), Type.Literal('postgres')]),
    /** Below the directory of the backup: a SQLite file, or an archive of `pg_dump`. */
    path: Type.String(),
  }),
  /** Absolute paths that were given with `-c`. */
  configuration: Type.Array(Type.String()),
  /** Absolute paths of the files of the configuration: its documents, keys, secrets and templates. */
  configurationFiles: Type.Array(Type.String()),
  signingKey: Type.Union([Type.String(), Type.Null()]),
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
  /** Followed by the path of a file below `local` in the media directory. */
  media: 'media/local/',
  /** Followed by the absolute path of the file, without its first slash. */
  configuration: 'configuration/',
} as const;

/** Returns the path of a file of the configuration in a backup. */
export const configurationPath = (file: string): string =>
  backupPaths.configuration + file.replace(/^\/+/, '');

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
  if (typeof format === 'number' && format > 1) {
    throw new CommandFailure(
      `the backup ${directory} was made by a newer version of Hearth: restore it with that one`,
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
