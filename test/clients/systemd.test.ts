import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe } from 'node:test';
import { configure } from '../operators/server-process.ts';
import { builtHearth } from '../support/servers/built-hearth.ts';
import { test } from './bounded-test.ts';
import { eventually } from './eventually.ts';

const unit = join(import.meta.dirname, '..', '..', 'contrib', 'systemd', 'hearth.service');

/** Prints the datagrams that arrive at a socket, because Node has no such sockets. */
const receiver = `import socket, sys
receiver = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
receiver.bind(sys.argv[1])
print('bound', flush=True)
while True: print(receiver.recv(4096).decode(), flush=True)`;

describe('a server under systemd', () => {
  test('reports with systemd-notify that it is ready, that it lives, and that it stops', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-systemd-'));
    const socket = join(folder, 'notify');
    const python = spawn('/usr/bin/python3', ['-c', receiver, socket], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let received = '';
    python.stdout.on('data', (chunk) => {
      received += String(chunk);
    });
    const has = (line: string) => eventually(line, () => received.split('\n').includes(line));
    await has('bound');
    const flags = configure(join(folder, 'data')).flatMap((path) => ['-c', path]);
    const server = spawn(process.execPath, [await builtHearth(), 'serve', ...flags], {
      stdio: 'ignore',
      env: { ...process.env, NOTIFY_SOCKET: socket, WATCHDOG_USEC: '400000' },
    });
    const ended = new Promise((resolve) => server.once('close', resolve));
    try {
      await has('READY=1');
      await has('STATUS=Serves example.org');
      await has('WATCHDOG=1');
      server.kill('SIGTERM');
      await has('STOPPING=1');
      assert.equal(await ended, 0);
    } finally {
      server.kill('SIGKILL');
      python.kill();
      rmSync(folder, { recursive: true });
    }
  });

  test('has a unit that systemd accepts', () => {
    const folder = mkdtempSync(join(tmpdir(), 'hearth-systemd-'));
    try {
      // The archive is not unpacked on this machine.
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
