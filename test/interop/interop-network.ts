import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeTestAuthority, type TestAuthority } from '../support/network/test-authority.ts';
import { FederatingHearth } from './federating-hearth.ts';
import { ReferenceServer } from './reference-server.ts';

/** A homeserver of the network. */
export interface Homeserver {
  /** Server name, the domain of its users' ids. */
  readonly name: string;
  readonly url: string;
  /** Path of its log. */
  readonly logFile: string;
}

/** A homeserver that tests can stop and start. */
export interface ControlledHomeserver extends Homeserver {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** `kill -9`. */
  kill(): Promise<void>;
}

/** Folder into which the logs of both servers are copied; by default they are not copied. */
const logFolder = process.env['HEARTH_INTEROP_LOGS'];

/** Hearth and the reference server, which federate over TLS under one certificate authority. */
export class InteropNetwork {
  readonly hearth: FederatingHearth;
  readonly reference: ReferenceServer;
  /** The certificate authority that both trust. */
  readonly authority: TestAuthority;

  private constructor(hearth: FederatingHearth, reference: ReferenceServer, authority: TestAuthority) {
    this.hearth = hearth;
    this.reference = reference;
    this.authority = authority;
  }

  static async start(): Promise<InteropNetwork> {
    const authority = makeTestAuthority();
    const reference = await ReferenceServer.create(authority);
    const hearth = await FederatingHearth.create(authority);
    const network = new InteropNetwork(hearth, reference, authority);
    try {
      await Promise.all([hearth.start(), reference.start()]);
    } catch (error) {
      await network.#remove();
      throw error;
    }
    return network;
  }

  /** Cuts the servers off from each other; their users still reach them. */
  partition(): void {
    for (const { proxy } of [this.hearth, this.reference]) proxy.disconnect();
  }

  heal(): void {
    for (const { proxy } of [this.hearth, this.reference]) proxy.reconnect();
  }

  /** Stops both servers. @throws AssertionError when Hearth has logged an error */
  async stop(): Promise<void> {
    const { hearth, reference } = this;
    await hearth.stop();
    const log = hearth.log();
    if (logFolder) {
      writeFileSync(join(logFolder, `${hearth.name}.hearth.log`), log);
      writeFileSync(join(logFolder, `${hearth.name}.reference.log`), reference.log(Infinity));
    }
    await this.#remove();
    const isError = (line: string) => line.includes('"level":"error"') || line.includes('"level":"fatal"');
    assert.deepEqual(log.split('\n').filter(isError), [], 'Hearth logged errors');
  }

  async #remove(): Promise<void> {
    await Promise.all([this.hearth.remove(), this.reference.remove()]);
    this.authority.remove();
  }
}
