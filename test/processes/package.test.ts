import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { eventually } from '../clients/eventually.ts';
import { builtHearth } from '../support/servers/built-hearth.ts';
import { configure } from './server-process.ts';

const root = join(import.meta.dirname, '..', '..');

describe('the archive of `npm run package`', () => {
  let folder: string;
  let installed: string;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hearth-archive-'));
    const built = join(dirname(dirname(await builtHearth())), 'dist');
    const archive = join(folder, 'hearth.tar');
    const parameters = [
      '--uncompressed',
      '--output',
      archive,
      ...(existsSync(built) ? ['--built', built] : []),
    ];
    execFileSync(process.execPath, [join(root, 'scripts', 'package.ts'), ...parameters]);
    execFileSync('tar', ['-xf', archive, '-C', folder]);
    rmSync(archive);
    const name = readdirSync(folder).find((entry) => /^hearth-\d/.test(entry));
    installed = join(folder, name!);
  });
  after(() => rmSync(folder, { recursive: true }));

  it('runs a server with an empty environment, without npm or another Node, and also through a symbolic link', async () => {
    const paths = configure(join(folder, 'data'), { listeners: [listener] });
    const flags = paths.flatMap((path) => ['-c', path]);
    const server = spawn(join(installed, 'hearth'), ['serve', ...flags], { env: {}, stdio: 'pipe' });
    const ended = new Promise((resolve) => server.once('close', resolve));
    let output = '';
    for (const stream of [server.stdout, server.stderr]) {
      stream.on('data', (chunk) => {
        output += String(chunk);
      });
    }
    try {
      const url = await eventually(
        'the server',
        () => {
          if (server.exitCode !== null) throw new Error(output);
          return output.includes('Hearth serves') ? /http:\/\/127[\d.:]+/.exec(output)?.[0] : undefined;
        },
        30_000,
      );
      const versions = await fetch(`${url}/_matrix/client/versions`);
      assert.equal(versions.status, 200);
      const page = await fetch(url);
      assert.match(await page.text(), /<html/);
      assert.match(output, /\/hearth register-user -c/, 'hints name the command of the archive');
    } finally {
      server.kill('SIGTERM');
    }
    assert.equal(await ended, 0);
    const link = join(folder, 'link');
    symlinkSync(join(installed, 'hearth'), link);
    assert.match(execFileSync(link, ['--version'], { encoding: 'utf8' }), /\d+\.\d+\.\d+/);
  });

  it('contains compiled packages only for its platform, and no source files', () => {
    const prebuilds = readdirSync(join(installed, 'node_modules', 'sodium-native', 'prebuilds'));
    assert.deepEqual(prebuilds, [`${process.platform}-${process.arch}`]);
    assert.ok(!existsSync(join(installed, 'src')));
    assert.ok(existsSync(join(installed, 'contrib', 'systemd', 'hearth.service')));
  });
});

const listener = {
  port: 0,
  type: 'http',
  bind_addresses: ['127.0.0.1'],
  resources: [{ names: ['client'] }],
};
