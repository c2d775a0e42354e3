import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'node:test';
import { configure, type ServerProcess, startProcess } from '../processes/server-process.ts';
import { freePort } from '../support/network/free-port.ts';
import { after, before, test } from './bounded-test.ts';

const settings = { username: 'me', password: 'open sesame' };

describe('the debugging console of a built server, with the SSH client of OpenSSH', () => {
  let folder: string;
  let port: number;
  let server: ServerProcess | undefined;
  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'hearth-manhole-'));
    port = await freePort();
    const hostKey = join(folder, 'host-key');
    execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', hostKey]);
    const keys = { ssh_priv_key_path: hostKey, ssh_pub_key_path: `${hostKey}.pub` };
    writeFileSync(
      join(folder, 'known_hosts'),
      `[127.0.0.1]:${port} ${readFileSync(keys.ssh_pub_key_path, 'utf8')}`,
    );
    server = await startProcess(
      configure(join(folder, 'data'), { manhole: port, manhole_settings: { ...settings, ...keys } }),
    );
  });
  after(async () => {
    await server?.kill();
    rmSync(folder, { recursive: true });
  });

  /** Runs the SSH client with `input` as its standard input. @returns its exit status and its output */
  async function ssh(terminal: '-T' | '-tt', password: string, input: string) {
    const askpass = join(folder, 'askpass');
    writeFileSync(askpass, `#!/bin/sh\necho '${password}'\n`, { mode: 0o700 });
    const options = [
      // Only a server with the host key of the configuration is accepted.
      'StrictHostKeyChecking=yes',
      `UserKnownHostsFile=${join(folder, 'known_hosts')}`,
      'NumberOfPasswordPrompts=1',
    ];
    const flags = ['-F', 'none', ...options.flatMap((option) => ['-o', option]), '-p', String(port)];
    const client = spawn('ssh', [terminal, ...flags, 'me@127.0.0.1'], {
      env: { ...process.env, SSH_ASKPASS: askpass, SSH_ASKPASS_REQUIRE: 'force' },
    });
    let text = '';
    for (const stream of [client.stdout, client.stderr]) {
      stream.on('data', (chunk) => {
        text += String(chunk);
      });
    }
    client.stdin.on('error', () => {});
    client.stdin.end(input);
    const status = await new Promise((resolve) => client.once('close', resolve));
    return { status, text };
  }

  for (const [terminal, name] of [
    ['-T', 'without a terminal'],
    ['-tt', 'with a terminal'],
  ] as const) {
    test(`runs JavaScript after a login with the password, ${name}`, async () => {
      const { status, text } = await ssh(terminal, settings.password, "'on ' + kernel.serverName\n.exit\n");
      assert.equal(status, 0, text);
      assert.match(text, /'on example\.org'/);
    });
  }

  test('refuses a login with a wrong password', async () => {
    const { status, text } = await ssh('-T', 'please', '');
    assert.equal(status, 255);
    assert.match(text, /Permission denied/);
    assert.match(server!.log(), /Refused a login to the debugging console/);
  });
});
