import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../support/network/free-port.ts';
import { eventually } from '../eventually.ts';
import { IrcConnection } from './irc-connection.ts';

const program = '/usr/sbin/ngircd';

const configuration = (port: number) => `[Global]
Name = irc.test
Info = Network of the tests
Listen = 127.0.0.1
Ports = ${port}
[Limits]
MaxConnectionsIP = 0
MaxPenaltyTime = 0
[Options]
DNS = no
Ident = no
PAM = no
`;

/** An IRC network: ngIRCd of Debian on the loopback address. */
export class IrcServer {
  readonly port: number;
  readonly #child: ChildProcess;
  readonly #folder: string;

  private constructor(port: number, child: ChildProcess, folder: string) {
    this.port = port;
    this.#child = child;
    this.#folder = folder;
  }

  static async start(): Promise<IrcServer> {
    const port = await freePort();
    const folder = mkdtempSync(join(tmpdir(), 'hearth-irc-'));
    const file = join(folder, 'ngircd.conf');
    writeFileSync(file, configuration(port));
    const child = spawn(program, ['--nodaemon', '--config', file], { stdio: 'ignore' });
    const failed = once(child, 'error').then(() =>
      assert.fail('ngIRCd is missing; install it with: apt-get install ngircd'),
    );
    const answers = () =>
      IrcConnection.open(port, 'probe').then(
        (probe) => {
          probe.close();
          return true;
        },
        () => undefined,
      );
    await Promise.race([eventually('the IRC server', answers), failed]);
    return new IrcServer(port, child, folder);
  }

  async stop(): Promise<void> {
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exit;
    rmSync(this.#folder, { recursive: true });
  }
}
