import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import promises, { open as openFile } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, it, mock } from 'node:test';
import { eventually } from '../../../test/clients/eventually.ts';
import { filesBelow } from '../../../test/support/files/stored-files.ts';
import { silentLogger } from '../../kernel/observability/index.ts';
import { systemRandomness } from '../../kernel/randomness.ts';
import type { MediaArea } from '../media-file.ts';
import { MediaFiles } from '../providers/media-files.ts';
import { serveMultipart } from '../serving/serve-content.ts';
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

  /** @param isKept whether a file has a row @param isFull whether the disk is full */
  const openStore = (isKept = async (_area: MediaArea, _id: string) => false, isFull = false) =>
    MediaStore.open(
      {
        directory,
        randomness: systemRandomness,
        log: silentLogger,
        // A real device that is always full.
        ...(isFull && { openFile: (() => openFile('/dev/full', 'w')) as typeof openFile }),
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
  const files = () => filesBelow(directory).map((path) => path.slice(directory.length + 1));

  it('stores the bytes unchanged under a random name', async () => {
    const store = await openStore();
    const stored = await store.store('local', pieces('one ', '', 'two'), async (file) => {
      assert.equal(files().filter((name) => name.endsWith('.part')).length, 1, 'the file waits for its row');
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

  it('frees each chunk before it takes the next, so that memory does not grow with the size of a file', async () => {
    const store = await openStore();
    const chunks = Array.from({ length: 50 }, (_, index) => Buffer.from(new ArrayBuffer(65_536)).fill(index));
    const whole = createHash('sha256').update(Buffer.concat(chunks)).digest('hex');
    async function* content() {
      for (const [index, chunk] of chunks.entries()) {
        assert.ok(chunks.slice(0, index).every(({ byteLength }) => byteLength === 0));
        yield chunk;
      }
      // A chunk that is larger than a batch, and shares its buffer with other bytes.
      yield Buffer.alloc(2_000_000, 'x').subarray(5);
    }
    const { size, sha256, fileId } = await store.store('local', content(), async (file) => file);
    const bytes = await buffer((await store.open('local', fileId))!.stream());
    assert.deepEqual([size, bytes.length], [50 * 65_536 + 1_999_995, size]);
    assert.equal(sha256, createHash('sha256').update(bytes).digest('hex'));
    const beginning = bytes.subarray(0, 50 * 65_536);
    assert.equal(createHash('sha256').update(beginning).digest('hex'), whole);
  });

  it('on a file system without hard links, stores files, and at the next start deletes files that have no row', async () => {
    const linkMock = mock.method(promises, 'link', () =>
      Promise.reject(Object.assign(new Error('not permitted'), { code: 'EPERM' })),
    );
    syncBuiltinESMExports();
    try {
      const store = await openStore();
      const { fileId } = await store.store('local', pieces('text'), async (file) => {
        assert.deepEqual(readdirSync(join(directory, 'incoming')), [`local.${file.fileId}.placed`]);
        return file;
      });
      assert.equal(linkMock.mock.callCount() > 0, true);
      assert.deepEqual(
        [await store.sizeOf('local', fileId), readdirSync(join(directory, 'incoming'))],
        [4, []],
      );
      // The process ends before the row is written.
      let fileWithoutRow = '';
      void store.store('local', pieces('more'), (file) => {
        fileWithoutRow = file.fileId;
        return new Promise(() => undefined);
      });
      await eventually('the file to wait for its row', () => fileWithoutRow !== '');
      const restarted = await openStore(async (_area, id) => id === fileId);
      const sizes = [
        await restarted.sizeOf('local', fileId),
        await restarted.sizeOf('local', fileWithoutRow),
      ];
      assert.deepEqual([sizes, readdirSync(join(directory, 'incoming'))], [[4, undefined], []]);
    } finally {
      linkMock.mock.restore();
      syncBuiltinESMExports();
    }
  });

  it('deletes the file when the upload is interrupted or the row cannot be written', async () => {
    const store = await openStore();
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
    const store = await openStore(undefined, true);
    const diskFullError = { status: 507, errcode: 'M_UNKNOWN', message: /no disk space/ };
    await assert.rejects(
      store.store('local', pieces('x'), async () => 1),
      diskFullError,
    );
    assert.deepEqual(files(), []);
  });

  it('deletes incomplete files and files without a row at the next start after a crash', async () => {
    const store = await openStore();
    const keep = async () => (await store.store('local', pieces('x'), async (file) => file)).fileId;
    const [withRow, withoutRow, moved, movedAndDeleted] = [
      await keep(),
      await keep(),
      await keep(),
      await keep(),
    ];
    const writeMarker = (name: string) => writeFileSync(join(directory, 'incoming', name), '');
    writeMarker(`local.${withRow}.placed`);
    writeMarker(`local.${withoutRow}.placed`);
    writeMarker(`local.${moved}.moving`);
    writeMarker(`local.${movedAndDeleted}.moving`);
    writeMarker(`remote.${'a'.repeat(24)}.part`);
    writeMarker('unrelated');
    const restarted = await openStore(async (_area, fileId) => [withRow, moved].includes(fileId));
    assert.equal(await restarted.sizeOf('local', withRow), 1);
    assert.equal(await restarted.sizeOf('local', moved), 1);
    assert.equal(await restarted.sizeOf('local', withoutRow), undefined);
    assert.deepEqual(
      restarted.swept.map(({ fileId }) => fileId).sort(),
      [withoutRow, movedAndDeleted].sort(),
    );
    assert.deepEqual(readdirSync(join(directory, 'incoming')), ['unrelated']);
  });

  it('deletes at the next start the files whose rows were deleted just before the process ended', async () => {
    const store = await openStore();
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
    const restarted = await openStore(async (_area, fileId) => fileId !== deleted);
    const sizes = await Promise.all([deleted, kept, other].map((id) => restarted.sizeOf('local', id)));
    assert.deepEqual(sizes, [undefined, 4, 4]);
    assert.deepEqual(restarted.swept, [{ area: 'local', fileId: deleted }]);
    assert.deepEqual(readdirSync(join(directory, 'incoming')), []);
  });

  it('closes files after reading, also when the reader stops early', async () => {
    const store = await openStore();
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

  it('closes the source of a stream that is destroyed before its first byte is read', async () => {
    const store = await openStore();
    const { fileId, size } = await store.store('local', pieces('x'), async (file) => file);
    const content = (await store.open('local', fileId))!;
    const properties = { contentType: 'text/plain', fileName: undefined, size };
    const reply = serveMultipart({ ...properties, body: content }, systemRandomness);
    (reply.body as Readable).destroy();
    await eventually('the files to be closed', () => openFiles().length === 0);

    const source = new Readable({ read() {} });
    const files = new MediaFiles(store, { isUsed: true, open: async () => source });
    const stored = { area: 'local', fileId: 'a'.repeat(24), sha256: '', ...properties } as const;
    (await files.restore({ ...stored, isAuthenticated: true, isQuarantined: false }))!.destroy();
    await eventually('the source to be closed', () => source.destroyed);
  });

  /** Returns a file that only a provider has, with this text. */
  const fileOfProvider = (text: string) => {
    const properties = { contentType: '', fileName: undefined, isAuthenticated: true, isQuarantined: false };
    const sha256 = createHash('sha256').update(text).digest('hex');
    const file = { area: 'local', fileId: 'a'.repeat(24), size: text.length, sha256, ...properties } as const;
    return { file, provider: { isUsed: true, open: async () => Readable.from(pieces(text)) } };
  };

  it('serves a file of a storage provider even when the disk is full and the file cannot be restored', async () => {
    const { file, provider } = fileOfProvider('the text');
    const media = new MediaFiles(await openStore(undefined, true), provider);
    assert.equal((await buffer((await media.restore(file))!)).toString(), 'the text');
    await assert.rejects(media.ensure(file), { status: 507 }, 'a thumbnail needs the file on the disk');
    assert.deepEqual(files(), []);
  });

  it('restores a file only if it still has a row when its bytes have been read', async () => {
    const { file, provider } = fileOfProvider('the text');
    let hasRow = true;
    const store = new MediaFiles(await openStore(async () => hasRow), provider);
    assert.equal((await buffer((await store.restore(file))!)).length, 8);
    assert.equal(files().length, 1);
    await store.disk.delete('local', file.fileId);
    hasRow = false;
    assert.equal((await buffer((await store.restore(file))!)).length, 8);
    assert.deepEqual(files(), []);
  });

  it('keeps a file whose row was perhaps written by a failed transaction, and deletes it at the next start if it has no row', async () => {
    for (const [isKept, isKeptAtStart] of [
      [async () => true, true],
      [() => Promise.reject(new Error('no connection')), false],
    ] as const) {
      const store = await openStore(isKept);
      let id = '';
      const record = async ({ fileId }: { fileId: string }) => {
        id = fileId;
        throw new Error('connection lost');
      };
      await assert.rejects(store.store('local', pieces('x'), record), /connection lost/);
      assert.equal(await store.sizeOf('local', id), 1);
      const restarted = await openStore(async () => isKeptAtStart);
      assert.equal(await restarted.sizeOf('local', id), isKeptAtStart ? 1 : undefined);
      assert.deepEqual(readdirSync(join(directory, 'incoming')), []);
    }
  });

  it('closes the source when a file cannot be restored because the disk is full', async () => {
    const source = Readable.from(pieces('x'));
    const files = new MediaFiles(await openStore(undefined, true), {
      isUsed: true,
      open: async () => source,
    });
    const file = { area: 'local', fileId: 'a'.repeat(24), size: 1, sha256: '' } as const;
    const properties = { contentType: '', fileName: undefined, isAuthenticated: true, isQuarantined: false };
    const restored = await files.restore({ ...file, ...properties });
    await assert.rejects(buffer(restored!));
    await eventually('the source to be closed', () => source.destroyed);
  });
});
