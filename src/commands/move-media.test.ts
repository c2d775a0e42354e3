import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { systemRandomness } from '../kernel/randomness.ts';
import { initialize } from './init.ts';
import { moveMediaToProviders } from './move-media.ts';

// Commands without -c read data/homeserver.yaml of the working directory, where a developer may run a server.
process.chdir(import.meta.dirname);

describe('hearth media move', () => {
  const folder = mkdtempSync(join(tmpdir(), 'hearth-move-'));
  const config = initialize({ serverName: 'example.org', directory: folder }, systemRandomness);
  after(() => rmSync(folder, { recursive: true, force: true }));

  /** Runs the command on a terminal. @returns its output and its progress */
  async function run(paths: readonly string[], flags: { keep?: boolean } = {}) {
    const out: string[] = [];
    const shown: string[] = [];
    const stream = (texts: string[]) => ({ isTTY: true, write: (text: string) => texts.push(text) > 0 });
    await moveMediaToProviders({ config: [...paths], ...flags }, {
      stdout: stream(out),
      stderr: stream(shown),
    } as never);
    return { out: out.join(''), shown };
  }

  it('shows a progress bar and the bytes that were sent, and keeps the files with --keep', async () => {
    const media = join(folder, 'media_store', 'local', 'aa', 'bb');
    mkdirSync(media, { recursive: true });
    for (const name of ['one', 'two']) writeFileSync(join(media, name), name);
    const directory = join(folder, 'provider');
    const providers = join(folder, 'providers.yaml');
    const options = {
      media_store_path: join(folder, 'media_store'),
      media_storage_providers: [{ module: 'file_system', store_local: true, config: { directory } }],
    };
    writeFileSync(providers, JSON.stringify(options));
    const kept = await run([config, providers], { keep: true });
    assert.equal(kept.out, '2 files are stored; 6 bytes were sent.\n');
    const bar = (filled: number) => '#'.repeat(filled).padEnd(30, '.');
    assert.deepEqual(kept.shown, [
      `\r[${bar(0)}] 0 of 2 files, 0 MiB sent\u001b[K`,
      `\r[${bar(15)}] 1 of 2 files, 0 MiB sent\u001b[K`,
      `\r[${bar(30)}] 2 of 2 files, 0 MiB sent\u001b[K`,
      '\r\u001b[K',
    ]);
    assert.deepEqual(readdirSync(media), ['one', 'two']);
    assert.equal((await run([config, providers])).out, '2 files are moved; 0 bytes were sent.\n');
    assert.deepEqual(readdirSync(media), []);
    assert.equal(readFileSync(join(directory, 'local/aa/bb/two'), 'utf8'), 'two');
  });

  it('refuses to run without a provider that stores media, or without a configuration', async () => {
    await assert.rejects(run([config]), /no provider of media_storage_providers has store_local/);
    await assert.rejects(run([]), /give the configuration with -c/);
  });
});
