import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { open as openFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { systemRandomness } from '../../kernel/randomness.ts';
import type { MediaArea } from '../media-file.ts';
import { serveMultipart } from '../serving/serve-content.ts';
import { MediaFiles } from './media-files.ts';
import { MediaStore } from './media-store.ts';

async function* pieces(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text);
}

describe('MediaStore', () => {
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
  /** Returns the files below the directory that this process has open. */
  const openFiles = () => {
    const paths = readdirSync('/proc/self/fd').map((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`);
      } catch {
        // The file was closed after the directory was listed.
        return '';
      }
    });
    return paths.filter((path) => path.startsWith(directory));
  };
  /** Returns all files below the directory. */
  const files = () =>
    readdirSync(directory, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1));

  it('stores the bytes unchanged under a random name', async () => {
    const store = await opened();
    const stored = await store.store('local', pieces('one ', '', 'two'), async (file) => {
      assert.equal(
        files().filter((name) => name.endsWith('.placed')).length,
        1,
        'the file waits for its row',
      );
      return file;
    });
    assert.equal(stored.size, 7);
    assert.equal(stored.sha256, createHash('sha256').update('one two').digest('hex'));
    const { fileId } = stored;
    assert.match(fileId, /^[A-Za-z]{24}$/);
    assert.deepEqual(files(), [`local/${fileId.slice(0, 2)}/${fileId.slice(2, 4)}/${fileId.slice(4)}`]);
    assert.equal((await buffer((await store.open('local', fileId))!.stream())).toString(), 'one two');
    assert.equal(await store.sizeOf('local', fileId), 7);
    assert.equal(await store.sizeOf('remote', fileId), undefined);
    await store.delete('local', fileId);
    assert.deepEqual(files(), []);
  });

  it('deletes the file when the upload is interrupted or the row cannot be written', async () => {
    const store = await opened();
    async function* broken() {
      yield Buffer.alloc(100_000);
      throw new Error('the line is dead');
    }
    await assert.rejects(
      store.store('local', broken(), async () => 1),
      /the line is dead/,
    );
    assert.deepEqual(files(), []);
    const record = async () => {
      throw new Error('no row');
    };
    await assert.rejects(store.store('remote', pieces('x'), record), /no row/);
    assert.deepEqual(files(), []);
  });

  it('throws an error without paths when the disk is full, and deletes the file', async () => {
    const store = await opened(undefined, true);
    const full = { status: 507, errcode: 'M_UNKNOWN', message: /no disk space/ };
    await assert.rejects(
      store.store('local', pieces('x'), async () => 1),
      full,
    );
    assert.deepEqual(files(), []);
  });

  it('deletes incomplete files and files without a row at the next start after a crash', async () => {
    const store = await opened();
    const keep = async () => (await store.store('local', pieces('x'), async (file) => file)).fileId;
    const [withRow, without] = [await keep(), await keep()];
    const marker = (name: string) => writeFileSync(join(directory, 'incoming', name), '');
    marker(`local.${withRow}.placed`);
    marker(`local.${without}.placed`);
    marker(`remote.${'a'.repeat(24)}.part`);
    marker('unrelated');
    const again = await opened(async (_area, fileId) => fileId === withRow);
    assert.equal(await again.sizeOf('local', withRow), 1);
    assert.equal(await again.sizeOf('local', without), undefined);
    assert.deepEqual(readdirSync(join(directory, 'incoming')), ['unrelated']);
  });

  it('deletes files at the next start whose rows were deleted just before the process ended', async () => {
    const store = await opened();
    const ids: string[] = [];
    for (let count = 0; count < 3; count++)
      ids.push((await store.store('local', pieces('text'), async (file) => file)).fileId);
    const [deleted, kept, other] = ids as [string, string, string];
    // The process ends when the rows are gone and before the files are.
    const ended = new Promise<string[]>(() => undefined);
    let isMarked = false;
    void store.deleteWithRows('local', [deleted, kept], () => {
      isMarked = true;
      return ended;
    });
    await eventually('the markers', () => isMarked);
    const again = await opened(async (_area, fileId) => fileId !== deleted);
    const sizes = await Promise.all([deleted, kept, other].map((id) => again.sizeOf('local', id)));
    assert.deepEqual(sizes, [undefined, 4, 4]);
    assert.deepEqual(again.swept, [{ area: 'local', fileId: deleted }]);
    assert.deepEqual(readdirSync(join(directory, 'incoming')), []);
  });

  it('closes files after reading, also when the reader stops early', async () => {
    const store = await opened();
    const { fileId } = await store.store('local', pieces('x'.repeat(1_000_000)), async (file) => file);
    for (let count = 0; count < 5; count++) {
      (await store.open('local', fileId))!.close();
      const stream = (await store.open('local', fileId))!.stream();
      for await (const chunk of stream) {
        assert.ok((chunk as Buffer).length > 0);
        break;
      }
      assert.ok(stream.destroyed);
    }
    await eventually('the files to be closed', () => openFiles().length === 0);
  });

  it('closes the source of a stream that is destroyed before its first byte was read', async () => {
    const store = await opened();
    const { fileId, size } = await store.store('local', pieces('x'), async (file) => file);
    const content = (await store.open('local', fileId))!;
    const described = { contentType: 'text/plain', fileName: undefined, size };
    const reply = serveMultipart({ ...described, body: content }, systemRandomness);
    (reply.body as Readable).destroy();
    await eventually('the files to be closed', () => openFiles().length === 0);

    const source = new Readable({ read() {} });
    const files = new MediaFiles(store, { isUsed: true, open: async () => source });
    const stored = { area: 'local', fileId: 'a'.repeat(24), sha256: '', ...described } as const;
    (await files.restore({ ...stored, isAuthenticated: true, isQuarantined: false }))!.destroy();
    await eventually('the source to be closed', () => source.destroyed);
  });

  it('closes the source when a file cannot be restored because the disk is full', async () => {
    const source = Readable.from(pieces('x'));
    const files = new MediaFiles(await opened(undefined, true), { isUsed: true, open: async () => source });
    const file = { area: 'local', fileId: 'a'.repeat(24), size: 1, sha256: '' } as const;
    const described = { contentType: '', fileName: undefined, isAuthenticated: true, isQuarantined: false };
    const restored = await files.restore({ ...file, ...described });
    await assert.rejects(buffer(restored!));
    await eventually('the source to be closed', () => source.destroyed);
  });
});
