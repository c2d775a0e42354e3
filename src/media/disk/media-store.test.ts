import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { open as openFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { systemRandomness } from '../../kernel/randomness.ts';
import type { MediaArea } from '../media-file.ts';
import { MediaStore } from './media-store.ts';

async function* pieces(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}

describe('files of media', () => {
  let directory: string;
  beforeEach(() => {
    directory = join(mkdtempSync(join(tmpdir(), 'hearth-files-')), 'media');
  });
  afterEach(() => rmSync(join(directory, '..'), { recursive: true, force: true }));

  const opened = (isKept = async (_area: MediaArea, _id: string) => false, full = false) =>
    MediaStore.open(
      {
        directory,
        randomness: systemRandomness,
        log: silentLogger,
        // A real device that is always full.
        ...(full && { openFile: (() => openFile('/dev/full', 'w')) as typeof openFile }),
      },
      isKept,
    );
  /** Those below the directory that this process has open. */
  const openFiles = () => {
    const paths = readdirSync('/proc/self/fd').map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`);
      } catch {
        // It has been closed since.
        return '';
      }
    });
    return paths.filter((path) => path.startsWith(directory));
  };
  /** Every file below the directory. */
  const files = () =>
    readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1));

  it('are kept as they came, under a name of their own', async () => {
    const store = await opened();
    const kept = await store.keep('local', pieces('one ', '', 'two'), async (file) => {
      assert.equal(files().filter((name) => name.endsWith('.placed')).length, 1, 'its row is still to come');
      return file;
    });
    assert.equal(kept.size, 7);
    assert.equal(kept.sha256, createHash('sha256').update('one two').digest('hex'));
    const { fileId } = kept;
    assert.match(fileId, /^[A-Za-z]{24}$/);
    assert.deepEqual(files(), [`local/${fileId.slice(0, 2)}/${fileId.slice(2, 4)}/${fileId.slice(4)}`]);
    assert.equal((await buffer(store.read('local', fileId))).toString(), 'one two');
    assert.equal(await store.sizeOf('local', fileId), 7);
    assert.equal(await store.sizeOf('remote', fileId), undefined);
    await store.delete('local', fileId);
    assert.deepEqual(files(), []);
  });

  it('leave nothing behind when the bytes break off, or the row can not be written', async () => {
    const store = await opened();
    async function* broken() {
      yield Buffer.alloc(100_000);
      throw new Error('the line is dead');
    }
    await assert.rejects(
      store.keep('local', broken(), async () => 1),
      /the line is dead/,
    );
    assert.deepEqual(files(), []);
    const record = async () => {
      throw new Error('no row');
    };
    await assert.rejects(store.keep('remote', pieces('x'), record), /no row/);
    assert.deepEqual(files(), []);
  });

  it('say so when the disk is full, and leave nothing behind', async () => {
    const store = await opened(undefined, true);
    const full = { status: 507, errcode: 'M_UNKNOWN', message: /no room/ };
    await assert.rejects(
      store.keep('local', pieces('x'), async () => 1),
      full,
    );
    assert.deepEqual(files(), []);
  });

  it('are cleared out after a crash unless they have a row', async () => {
    const store = await opened();
    const keep = async () => (await store.keep('local', pieces('x'), async (file) => file)).fileId;
    const [withRow, without] = [await keep(), await keep()];
    const marker = (name: string) => writeFileSync(join(directory, 'incoming', name), '');
    marker(`local.${withRow}.placed`);
    marker(`local.${without}.placed`);
    marker(`remote.${'a'.repeat(24)}.part`);
    marker('of-somebody-else');
    const again = await opened(async (_area, fileId) => fileId === withRow);
    assert.equal(await again.sizeOf('local', withRow), 1);
    assert.equal(await again.sizeOf('local', without), undefined);
    assert.deepEqual(readdirSync(join(directory, 'incoming')), ['of-somebody-else']);
  });

  it('close what was opened to be read, also when nobody reads to the end', async () => {
    const store = await opened();
    const { fileId } = await store.keep('local', pieces('x'.repeat(1_000_000)), async (file) => file);
    for (let count = 0; count < 5; count++) {
      store.read('local', fileId).destroy();
      const stream = store.read('local', fileId);
      for await (const chunk of stream) {
        assert.ok((chunk as Buffer).length > 0);
        break;
      }
      assert.ok(stream.destroyed);
    }
    await eventually('the files to be closed', () => openFiles().length === 0);
  });
});
