import { createHmac, randomBytes } from 'node:crypto';
import type { Target } from '../target.ts';
import { type Answer, Connection } from './connection.ts';
import { inParallel } from './parallel.ts';

/** A user of the server under load, with its own connection. */
export class Account {
  readonly userId: string;
  readonly connection: Connection;
  readonly #baseUrl: string;
  readonly token: string;
  readonly #transactionPrefix: string;
  #transactions = 0;

  constructor(baseUrl: string, userId: string, token: string, transactionPrefix = 't') {
    this.userId = userId;
    this.#transactionPrefix = transactionPrefix;
    this.#baseUrl = baseUrl;
    this.token = token;
    this.connection = new Connection(baseUrl, token);
  }

  /** Returns the same user on another connection, for concurrent requests, with separate transaction ids. */
  onSecondConnection(): Account {
    return new Account(this.#baseUrl, this.userId, this.token, 'twin');
  }

  /** Creates a public room of version 10. @returns its id */
  async createPublicRoom(): Promise<string> {
    const body = JSON.stringify({ preset: 'public_chat', room_version: '10' });
    const { room_id } = await this.#call<{ room_id: string }>('POST', '/_matrix/client/v3/createRoom', body);
    return room_id;
  }

  async join(roomId: string): Promise<void> {
    await this.#call('POST', `/_matrix/client/v3/join/${encodeURIComponent(roomId)}`, '{}');
  }

  /** Sends a text message. */
  async send(roomId: string, text: string): Promise<void> {
    const transaction = `${this.#transactionPrefix}${this.#transactions++}`;
    const path = `/_matrix/client/v3/rooms/${encodeURIComponent(roomId)}/send/m.room.message/${transaction}`;
    const content = JSON.stringify({ msgtype: 'm.text', body: text });
    expectOk(await this.connection.request('PUT', path, content), path);
  }

  /** Requests a sync. @param query as in the specification @returns the response as JSON bytes */
  async sync(query: Readonly<Record<string, string>>): Promise<Buffer> {
    return expectOk(await this.connection.request('GET', syncPath(query)), 'sync');
  }

  async #call<T>(method: string, path: string, body?: string): Promise<T> {
    return JSON.parse(expectOk(await this.connection.request(method, path, body), path).toString()) as T;
  }
}

/** Returns the path of a sync with its query. */
export function syncPath(query: Readonly<Record<string, string>>): string {
  return `/_matrix/client/v3/sync?${new URLSearchParams(query)}`;
}

/** Returns the body. @throws Error with the response, unless the status is 200 */
export function expectOk(answer: Answer, what: string): Buffer {
  if (answer.status !== 200) throw new Error(`${what}: ${answer.status} ${answer.body.toString()}`);
  return answer.body;
}

/**
 * Registers users through the shared secret, which works with any registration policy. The usernames are new in each
 * run, so that they are free on a server that earlier runs have used.
 */
export async function registerAccounts(target: Target, count: number): Promise<Account[]> {
  const run = randomBytes(5).toString('hex');
  return inParallel(count, 8, (index) => registerAccount(target, `bench-${run}-${index}`));
}

async function registerAccount(target: Target, username: string): Promise<Account> {
  const connection = new Connection(target.url);
  const path = '/_synapse/admin/v1/register';
  const { nonce } = JSON.parse(expectOk(await connection.request('GET', path), path).toString()) as {
    nonce: string;
  };
  const password = 'bench password';
  const mac = createHmac('sha1', target.registrationSecret)
    .update([nonce, username, password, 'notadmin'].join('\0'))
    .digest('hex');
  const body = JSON.stringify({ nonce, username, password, admin: false, mac });
  const answer = expectOk(await connection.request('POST', path, body), path);
  connection.close();
  const { user_id, access_token } = JSON.parse(answer.toString()) as {
    user_id: string;
    access_token: string;
  };
  return new Account(target.url, user_id, access_token);
}
