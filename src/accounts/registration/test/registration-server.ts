import assert from 'node:assert/strict';
import { afterEach } from 'node:test';
import type { OpenDatabase } from '../../../../test/support/databases/databases.ts';
import {
  AccountsServer,
  type AccountsServerOptions,
} from '../../../../test/support/servers/accounts-server.ts';

/** The `auth` object of the stage that requires no proof. */
export const dummy = { type: 'm.login.dummy' };

/** The server of a test of registration, which is stopped after the test, and shorthands for its requests. */
export class RegistrationServer {
  readonly #open: OpenDatabase;
  /** The running server, after `start`. */
  accounts!: AccountsServer;

  /** Must be called once in each file of tests. */
  constructor(open: OpenDatabase) {
    this.#open = open;
    afterEach(() => this.accounts?.stop());
  }

  /** Starts the server. */
  async start(setup: AccountsServerOptions = {}): Promise<void> {
    this.accounts = await AccountsServer.start(this.#open, setup);
  }

  /** Requests `POST /register`. */
  register(body: Record<string, unknown>, query = '') {
    return this.accounts.call('POST', `/register${query}`, { body });
  }

  /** Asserts that `POST /register` is refused. */
  async refuses(status: number, errcode: string, body: Record<string, unknown>, query = ''): Promise<void> {
    const answer = await this.register(body, query);
    assert.deepEqual([answer.status, answer.body['errcode']], [status, errcode], JSON.stringify(answer.body));
  }
}
