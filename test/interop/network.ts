import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { makeTestAuthority, type TestAuthority } from '../support/network/test-authority.ts';
import { FederatingHearth } from './federating-hearth.ts';
import { ReferenceServer } from './reference-server.ts';

/** A homeserver of the network, whoever made it. */
export interface Member {
  /** The name that ids of its users end in. */
  readonly name: string;
  readonly url: string;
  /** Where it logs. */
  readonly logFile: string;
}

/** One that can be made to go and come back. */
export interface RunningMember extends Member {
  start(): Promise<void>;
  stop(): Promise<void>;
  /** `kill -9`. */
  kill(): Promise<void>;
}

/** A folder where the logs of both are kept, for who looks for the cause of something. */
const keptLogs = process.env['HEARTH_INTEROP_LOGS'];

/** Hearth and the reference server, which reach each other over TLS under one authority. */
export class Network {
  readonly hearth: FederatingHearth;
  readonly reference: ReferenceServer;
  readonly #authority: TestAuthority;

  private constructor(hearth: FederatingHearth, reference: ReferenceServer, authority: TestAuthority) {
    this.hearth = hearth;
    this.reference = reference;
    this.#authority = authority;
  }

  static async start(): Promise<Network> {
    const authority = makeTestAuthority();
    const reference = await ReferenceServer.create(authority);
    const hearth = await FederatingHearth.create(authority);
    const network = new Network(hearth, reference, authority);
    try {
      await Promise.all([hearth.start(), reference.start()]);
    } catch (error) {
      await network.#remove();
      throw error;
    }
    return network;
  }

  /** @throws AssertionError when Hearth had to log an error, whatever became of it */
  async stop(): Promise<void> {
    const { hearth, reference } = this;
    await hearth.stop();
    const log = hearth.log();
    if (keptLogs) {
      writeFileSync(join(keptLogs, `${hearth.name}.hearth.log`), log);
      writeFileSync(join(keptLogs, `${hearth.name}.reference.log`), reference.log(Infinity));
    }
    await this.#remove();
    const isError = (line: string) => line.includes('"level":"error"') || line.includes('"level":"fatal"');
    assert.deepEqual(log.split('\n').filter(isError), [], 'Hearth logged errors');
  }

  async #remove(): Promise<void> {
    await Promise.all([this.hearth.remove(), this.reference.remove()]);
    this.#authority.remove();
  }
}
