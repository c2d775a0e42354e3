import assert from 'node:assert/strict';
import {
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import type { HearthConfiguration } from '../../configuration.ts';
import { lastBackup, lastBackupFile, makeDirectoryForServer, noteBackup } from './last-backup.ts';

/** Only root may change the owner of a directory. */
const skip = process.getuid?.() === 0 ? false : 'only root changes owners';

describe('makeDirectoryForServer', { skip }, () => {
  it('changes the owner of directories that root creates to the owner of their parent directory', () => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-owner-'));
    try {
      chownSync(folder, 65_534, 65_534);
      const media = join(folder, 'data', 'media');
      makeDirectoryForServer(media);
      for (const path of [media, join(folder, 'data')]) {
        const { uid, gid, mode } = statSync(path);
        assert.deepEqual([uid, gid, mode & 0o777], [65_534, 65_534, 0o700], path);
      }
      chownSync(media, 0, 0);
      makeDirectoryForServer(media);
      assert.equal(statSync(media).uid, 0, 'an existing directory keeps its owner');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('changes the owner of directories with a relative path to the owner of the directory that contains them', () => {
    const previous = process.cwd();
    const folder = mkdtempSync(join(tmpdir(), 'hearth-owner-'));
    try {
      chownSync(folder, 65_534, 65_534);
      process.chdir(folder);
      for (const path of ['m', './n/o/']) {
        makeDirectoryForServer(path);
        assert.equal(statSync(path).uid, 65_534, path);
      }
    } finally {
      process.chdir(previous);
      rmSync(folder, { recursive: true });
    }
  });
});

describe('noteBackup', () => {
  it('replaces a symbolic link at the place of the note instead of writing to its target', () => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-note-'));
    try {
      const other = join(folder, 'other');
      writeFileSync(other, 'secret');
      const media = join(folder, 'media');
      mkdirSync(media);
      const configuration = { media: { media_store_path: media } } as HearthConfiguration;
      const file = lastBackupFile(configuration);
      symlinkSync(other, `${file}.new`);
      for (const createdTs of [1, 2]) {
        noteBackup(configuration, { createdTs, target: '/backups' });
        assert.deepEqual(lastBackup(configuration), { createdTs, target: '/backups' });
      }
      assert.equal(lstatSync(file).isSymbolicLink(), false);
      assert.equal(readFileSync(other, 'utf8'), 'secret');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
