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

describe('thumbnails on disk', () => {
  let directory: string;
  let media: MediaStore;
  let store: ThumbnailStore;
  const opened = () => ThumbnailStore.open({ directory, randomness: systemRandomness, maxKept: 5 });
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'hearth-thumbnails-'));
    media = await MediaStore.open(
      { directory, randomness: systemRandomness, log: silentLogger },
      async () => false,
    );
    store = await opened();
  });
  afterEach(() => rmSync(directory, { recursive: true, force: true }));

  const owner = { area: 'local', fileId: 'abcdefghijklmnopqrstuvwx' } as const;
  const write = (content: string) => (path: string) => writeFile(path, content);
  const place = () => join(directory, 'thumbnails/local/ab/cd/efghijklmnopqrstuvwx');
  const incoming = () => readdirSync(join(directory, 'incoming'));

  it('are there as they were written, each under its name', async () => {
    assert.equal(await store.sizeOf(owner, 'a.png'), undefined);
    await store.keep(owner, 'a.png', write('first'));
    await store.keep(owner, 'b.png', write('second'));
    assert.equal(await store.sizeOf(owner, 'a.png'), 5);
    assert.equal(await text(store.read(owner, 'b.png')), 'second');
    assert.equal(await store.sizeOf({ ...owner, area: 'remote' }, 'a.png'), undefined);
    assert.deepEqual(readdirSync(place()).sort(), ['a.png', 'b.png']);
    assert.deepEqual(incoming(), []);
  });

  it('are whole also when several write the same', async () => {
    const contents = Array.from({ length: 8 }, (_, index) => String(index).repeat(1_000));
    await Promise.all(contents.map((content) => store.keep(owner, 'a.png', write(content))));
    assert.ok(contents.includes(await text(store.read(owner, 'a.png'))));
    assert.deepEqual(incoming(), []);
  });

  it('leave nothing behind when they can not be written', async () => {
    const broken = async (path: string) => {
      writeFileSync(path, 'half of');
      throw new Error('no more');
    };
    await assert.rejects(store.keep(owner, 'a.png', broken), /no more/);
    assert.deepEqual(incoming(), []);
    assert.equal(await store.sizeOf(owner, 'a.png'), undefined);
    const full = async () => {
      throw Object.assign(new Error('disk'), { code: 'ENOSPC' });
    };
    await assert.rejects(store.keep(owner, 'a.png', full), { status: 507 });
  });

  it('of which a crash left something behind are cleared out', async () => {
    writeFileSync(join(directory, 'incoming', `${'x'.repeat(24)}.thumbnail`), '');
    writeFileSync(join(directory, 'incoming', 'of-somebody-else'), '');
    await opened();
    assert.deepEqual(incoming(), ['of-somebody-else']);
  });

  it('are so many of a file and no more, the oldest go', async () => {
    await store.keepFacts(owner, 'facts');
    for (let index = 0; index < 5; index++) {
      await store.keep(owner, `${index}.png`, write('x'));
      utimesSync(join(place(), `${index}.png`), 1_000 + index, 1_000 + index);
    }
    await store.keep(owner, 'new.png', write('x'));
    assert.equal(await store.sizeOf(owner, '0.png'), undefined);
    assert.equal(await store.sizeOf(owner, '1.png'), 1);
    assert.equal(await store.sizeOf(owner, 'new.png'), 1);
    assert.equal(await store.readFacts(owner), 'facts');
  });

  it('go with the file that they show', async () => {
    async function* content() {
      yield Buffer.from('picture');
    }
    const { fileId } = await media.keep('local', content(), async (file) => file);
    const own = { area: 'local', fileId } as const;
    await store.keep(own, 'a.png', write('x'));
    await store.keepFacts(own, 'facts');
    await store.keep(owner, 'a.png', write('x'));
    await media.delete('local', fileId);
    assert.equal(await store.sizeOf(own, 'a.png'), undefined);
    assert.equal(await store.readFacts(own), undefined);
    assert.equal(await store.sizeOf(owner, 'a.png'), 1);
    await store.delete(owner);
    assert.equal(await store.sizeOf(owner, 'a.png'), undefined);
  });

  it('that are a directory, or can not be reached, are told of without paths', async () => {
    mkdirSync(join(place(), '..'), { recursive: true });
    writeFileSync(place(), 'a file where a directory should be');
    assert.equal(await store.sizeOf(owner, 'a.png'), undefined);
    await assert.rejects(store.keep(owner, 'a.png', write('x')), {
      status: 500,
      message: 'This server can not store or read files at the moment',
    });
    assert.deepEqual(incoming(), []);
  });
});
