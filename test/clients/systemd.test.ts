import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'node:test';
import { configure } from '../processes/server-process.ts';
import { builtHearth } from '../support/servers/built-hearth.ts';
import { test } from './bounded-test.ts';
import { eventually } from './eventually.ts';

const unit = join(import.meta.dirname, '..', '..', 'contrib', 'systemd', 'hearth.service');

/** Prints the datagrams that arrive at a Unix socket, because Node cannot receive them. */
const receiver = `import socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print('bound', flush=True)
while True: print(receiver.recv(4096).decode(), flush=True)`;

describe('a server under systemd', () => {
  test('reports with systemd-notify that it is ready, that its event loop turns, and that it stops', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-systemd-'));
    const socket = join(folder, 'notify');
    const python = spawn('/usr/bin/python3', ['-c', receiver, socket], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let received = '';
    python.stdout.on('data', (chunk) => {
      received += String(chunk);
    });
    const waitForLine = (line: string) => eventually(line, () => received.split('\n').includes(line));
    await waitForLine('bound');
    const flags = configure(join(folder, 'data')).flatMap((path) => ['-c', path]);
    const server = spawn(process.execPath, [await builtHearth(), 'serve', ...flags], {
      stdio: 'ignore',
      env: { ...process.env, NOTIFY_SOCKET: socket, WATCHDOG_USEC: '400000' },
    });
    const ended = new Promise((resolve) => server.once('close', resolve));
    try {
      await waitForLine('READY=1');
      await waitForLine('STATUS=Serves example.org');
      await waitForLine('WATCHDOG=1');
      server.kill('SIGTERM');
      await waitForLine('STOPPING=1');
      assert.equal(await ended, 0);
    } finally {
      server.kill('SIGKILL');
      python.kill();
      rmSync(folder, { recursive: true });
    }
  });

  test('systemd accepts the unit in contrib', () => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-systemd-'));
    try {
      // The program of the unit exists only where the release archive is unpacked.
      const text = readFileSync(unit, 'utf8').replace('ExecStart=/opt/hearth/hearth', 'ExecStart=/bin/true');
      const path = join(folder, 'hearth.service');
      writeFileSync(path, text);
      const output = execFileSync('systemd-analyze', ['verify', '--man=no', path], {
        encoding: 'utf8',
        stdio: 'pipe',
      });
      assert.equal(output, '');
      assert.match(text, /^Type=notify$/m);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});
