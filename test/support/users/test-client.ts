import assert from 'node:assert/strict';
import type { ApiAnswer, ApiRequest, TestServer, TestUser } from '../servers/server.ts';

export interface ClientEventJson {
  readonly type: string;
  readonly state_key?: string;
  readonly event_id: string;
  readonly sender: string;
  readonly content: Readonly<Record<string, unknown>>;
  readonly unsigned?: Readonly<Record<string, unknown>>;
  readonly redacts?: string;
}

interface Events {
  readonly events: readonly ClientEventJson[];
}

export interface JoinedRoomJson {
  readonly timeline: Events & { readonly limited: boolean; readonly prev_batch?: string };
  readonly state?: Events;
  readonly state_after?: Events;
  readonly ephemeral: { readonly events: readonly { type: string; content: Record<string, unknown> }[] };
  readonly account_data: { readonly events: readonly { type: string; content: Record<string, unknown> }[] };
  readonly summary?: Readonly<Record<string, unknown>>;
  readonly unread_notifications: Readonly<Record<string, number>>;
}

export type LeftRoomJson = Pick<JoinedRoomJson, 'timeline' | 'state' | 'state_after'>;

export interface SyncJson {
  readonly next_batch: string;
  readonly account_data?: { readonly events: readonly { type: string; content: unknown }[] };
  readonly rooms?: {
    readonly join?: Readonly<Record<string, JoinedRoomJson>>;
    readonly invite?: Readonly<Record<string, { readonly invite_state: Events }>>;
    readonly knock?: Readonly<Record<string, { readonly knock_state: Events }>>;
    readonly leave?: Readonly<Record<string, LeftRoomJson>>;
  };
}

let transactions = 0;

/**
 * A client of a test server, logged in as one user. All methods but `call` and `request` require a response with
 * status 200.
 */
export class TestClient {
  readonly #server: TestServer;
  readonly #user: TestUser;

  constructor(server: TestServer, user: TestUser) {
    this.#server = server;
    this.#user = user;
  }

  static async register(server: TestServer, name: string): Promise<TestClient> {
    return new TestClient(server, await server.register(name));
  }

  get id(): string {
    return this.#user.userId;
  }

  get token(): string {
    return this.#user.token;
  }

  /** Sends a request. @param path below `/_matrix/client/v3` */
  call(
    method: string,
    path: string,
    body?: unknown,
    query: NonNullable<ApiRequest['query']> = {},
  ): Promise<ApiAnswer> {
    const request = { token: this.token, query, ...(body === undefined ? undefined : { body }) };
    return this.#server.api(method, `/_matrix/client/v3${path}`, request);
  }

  /** Sends a request to any path. @param path the whole path */
  request(
    method: string,
    path: string,
    body: unknown,
    query: NonNullable<ApiRequest['query']> = {},
  ): Promise<ApiAnswer> {
    return this.#server.api(method, path, { token: this.token, query, body });
  }

  /** Sends a request that must succeed. @returns the response body */
  async do(
    method: string,
    path: string,
    body?: unknown,
    query: NonNullable<ApiRequest['query']> = {},
  ): Promise<Record<string, unknown>> {
    const answer = await this.call(method, path, body, query);
    assert.equal(answer.status, 200, `${method} ${path}: ${answer.raw}`);
    return answer.body;
  }

  async createRoom(options: Record<string, unknown> = { preset: 'public_chat' }): Promise<string> {
    return String((await this.do('POST', '/createRoom', options))['room_id']);
  }

  /** Calls the endpoint of a membership action. */
  async membership(
    action: 'join' | 'leave' | 'forget' | 'invite' | 'kick' | 'ban' | 'unban',
    roomId: string,
    target?: TestClient,
  ): Promise<void> {
    await this.do('POST', `/rooms/${enc(roomId)}/${action}`, target ? { user_id: target.id } : {});
  }

  join(roomId: string): Promise<void> {
    return this.membership('join', roomId);
  }

  leave(roomId: string): Promise<void> {
    return this.membership('leave', roomId);
  }

  async knock(roomId: string): Promise<void> {
    await this.do('POST', `/knock/${enc(roomId)}`, {});
  }

  /** Sends a text message. @returns the event id */
  say(roomId: string, body: string): Promise<string> {
    return this.send(roomId, 'm.room.message', { msgtype: 'm.text', body });
  }

  async send(roomId: string, type: string, content: unknown): Promise<string> {
    const path = `/rooms/${enc(roomId)}/send/${enc(type)}/txn${transactions++}`;
    return String((await this.do('PUT', path, content))['event_id']);
  }

  async setState(roomId: string, type: string, content: unknown, stateKey = ''): Promise<string> {
    const path = `/rooms/${enc(roomId)}/state/${enc(type)}/${enc(stateKey)}`;
    return String((await this.do('PUT', path, content))['event_id']);
  }

  async redact(roomId: string, eventId: string): Promise<string> {
    const path = `/rooms/${enc(roomId)}/redact/${enc(eventId)}/txn${transactions++}`;
    return String((await this.do('PUT', path, {}))['event_id']);
  }

  /** @param filter sent as JSON */
  async sync(
    since?: string,
    {
      filter,
      ...query
    }: { filter?: object; timeout?: number; full_state?: boolean; use_state_after?: boolean } = {},
  ): Promise<SyncJson> {
    const answer = await this.do('GET', '/sync', undefined, {
      ...query,
      ...(since === undefined ? undefined : { since }),
      ...(filter && { filter: JSON.stringify(filter) }),
    });
    return answer as unknown as SyncJson;
  }
}

/** Encodes an id for a path. */
export const enc = encodeURIComponent;
