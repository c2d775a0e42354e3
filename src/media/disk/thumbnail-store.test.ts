import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { silentLogger } from '../../kernel/observability/index.ts';
import { systemRandomness } from '../../kernel/randomness.ts';
import { MediaStore } from './media-store.ts';
import { ThumbnailStore } from './thumbnail-store.ts';

describe('ThumbnailStore', () => {
  let directory: string;
  let media: MediaStore;
  let store: ThumbnailStore;
  const openStore = () => ThumbnailStore.open({ directory, randomness: systemRandomness, maxKept: 5 });
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'hearth-thumbnails-'));
    media = await MediaStore.open(
      { directory, randomness: systemRandomness, log: silentLogger },
      async () => false,
    );
    store = await openStore();
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  const owner = { area: 'local', fileId: 'abcdefghijklmnopqrstuvwx' } as const;
  const write = (content: string) => (path: string) => writeFile(path, content);
  const place = () => join(directory, 'thumbnails/local/ab/cd/efghijklmnopqrstuvwx');
  const incoming = () => readdirSync(join(directory, 'incoming'));

  it('stores thumbnails unchanged under their names', async () => {
    assert.equal(await store.sizeOf(owner, 'a.png'), undefined);
    await store.store(owner, 'a.png', write('first'));
    await store.store(owner, 'b.png', write('second'));
    assert.equal(await store.sizeOf(owner, 'a.png'), 5);
    assert.equal(await text((await store.open(owner, 'b.png'))!.stream()), 'second');
    assert.equal(await store.sizeOf({ ...owner, area: 'remote' }, 'a.png'), undefined);
    assert.deepEqual(readdirSync(place()).sort(), ['a.png', 'b.png']);
    assert.deepEqual(incoming(), []);
  });

  it('stores a complete file when several writers store the same thumbnail', async () => {
    const contents = Array.from({ length: 8 }, (_, index) => String(index).repeat(1_000));
    await Promise.all(contents.map((content) => store.store(owner, 'a.png', write(content))));
    assert.ok(contents.includes(await text((await store.open(owner, 'a.png'))!.stream())));
    assert.deepEqual(incoming(), []);
  });

  it('deletes the file when writing fails, and answers 507 when the disk is full', async () => {
    const broken = async (path: string) => {
      writeFileSync(path, 'half of');
      throw new Error('no more');
    };
    await assert.rejects(store.store(owner, 'a.png', broken), /no more/);
    assert.deepEqual(incoming(), []);
    assert.equal(await store.sizeOf(owner, 'a.png'), undefined);
    const full = async () => {
      throw Object.assign(new Error('disk'), { code: 'ENOSPC' });
    };
    await assert.rejects(store.store(owner, 'a.png', full), { status: 507 });
  });

  it('deletes incomplete files of a crashed process at the start', async () => {
    writeFileSync(join(directory, 'incoming', `${'x'.repeat(24)}.thumbnail`), '');
    writeFileSync(join(directory, 'incoming', 'unrelated'), '');
    await openStore();
    assert.deepEqual(incoming(), ['unrelated']);
  });

  it('limits the thumbnails per file, and deletes the oldest first', async () => {
    await store.storeProperties(owner, 'properties');
    for (let index = 0; index < 5; index++) {
      await store.store(owner, `${index}.png`, write('x'));
      utimesSync(join(place(), `${index}.png`), 1_000 + index, 1_000 + index);
    }
    await store.store(owner, 'new.png', write('x'));
    assert.equal(await store.sizeOf(owner, '0.png'), undefined);
    assert.equal(await store.sizeOf(owner, '1.png'), 1);
    assert.equal(await store.sizeOf(owner, 'new.png'), 1);
    assert.equal(await store.readProperties(owner), 'properties');
  });

  it('deletes the thumbnails of a deleted file', async () => {
    async function* content() {
      yield Buffer.from('image');
    }
    const { fileId } = await media.store('local', content(), async (file) => file);
    const deletedOwner = { area: 'local', fileId } as const;
    await store.store(deletedOwner, 'a.png', write('x'));
    await store.storeProperties(deletedOwner, 'properties');
    await store.store(owner, 'a.png', write('x'));
    await media.delete('local', fileId);
    assert.equal(await store.sizeOf(deletedOwner, 'a.png'), undefined);
    assert.equal(await store.readProperties(deletedOwner), undefined);
    assert.equal(await store.sizeOf(owner, 'a.png'), 1);
    await store.delete(owner);
    assert.equal(await store.sizeOf(owner, 'a.png'), undefined);
  });

  it('throws errors whose messages contain no paths', async () => {
    mkdirSync(join(place(), '..'), { recursive: true });
    writeFileSync(place(), 'a file where a directory should be');
    assert.equal(await store.sizeOf(owner, 'a.png'), undefined);
    await assert.rejects(store.store(owner, 'a.png', write('x')), {
      status: 500,
      message: 'The server cannot store or read files at the moment',
    });
    assert.deepEqual(incoming(), []);
  });
});
