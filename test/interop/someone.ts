import assert from 'node:assert/strict';
import { eventually } from '../clients/eventually.ts';
import type { Member } from './network.ts';

export type Json = Readonly<Record<string, unknown>>;

export interface SyncedRoom {
  readonly ephemeral?: { readonly events: readonly Json[] };
  readonly invite_state?: { readonly events: readonly Json[] };
}

export interface Sync {
  readonly next_batch: string;
  readonly to_device?: { readonly events: readonly Json[] };
  readonly rooms?: Readonly<Record<string, Readonly<Record<string, SyncedRoom>>>>;
}

/** How long something may take to get from one server to the other, in milliseconds. */
const patience = 60_000;

let transactions = 0;

/** A user of a homeserver, whoever made it, through its client-server API. */
export class Someone {
  readonly id: string;
  readonly server: Member;
  readonly #token: string;
  #since = '';

  private constructor(id: string, server: Member, token: string) {
    this.id = id;
    this.server = server;
    this.#token = token;
  }

  static async register(server: Member, name: string): Promise<Someone> {
    const body = { username: name, password: 'a password', auth: { type: 'm.login.dummy' } };
    const answer = await fetch(`${server.url}/_matrix/client/v3/register`, {
      method: 'POST',
      body: JSON.stringify(body),
    });
    const { user_id, access_token } = (await answer.json()) as Record<'user_id' | 'access_token', string>;
    assert.equal(answer.status, 200, `${name} could not register`);
    return new Someone(user_id, server, access_token);
  }

  /** @param path below `/_matrix/client/v3`, or the whole of it when it begins with `/_` */
  async call(method: string, path: string, body?: Json): Promise<{ status: number; body: Json }> {
    const url = `${this.server.url}${path.startsWith('/_') ? '' : '/_matrix/client/v3'}${path}`;
    const headers = { authorization: `Bearer ${this.#token}` };
    const sent = method === 'GET' ? {} : { body: JSON.stringify(body ?? {}) };
    const answer = await fetch(url, { method, headers, ...sent });
    return { status: answer.status, body: (await answer.json()) as Json };
  }

  /** As `call`, where nothing but success will do. */
  async do(method: string, path: string, body?: Json): Promise<Json> {
    const answer = await this.call(method, path, body);
    assert.equal(answer.status, 200, `${this.id} ${method} ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  /** Syncs on from where the last one ended, until one has what is looked for. */
  async synced<T>(what: string, look: (sync: Sync) => T | undefined | false): Promise<T> {
    return eventually(
      what,
      async () => {
        const sync = (await this.do('GET', `/sync?timeout=1000${this.#since}`)) as unknown as Sync;
        this.#since = `&since=${enc(sync.next_batch)}`;
        return look(sync);
      },
      patience,
    );
  }

  /** Waits until a sync tells of a room under that membership. */
  listed(room: string, membership: 'invite' | 'knock' | 'leave' | 'join'): Promise<SyncedRoom> {
    const what = `${room} among the rooms of ${this.id}`;
    return this.synced(what, ({ rooms }) => rooms?.[membership]?.[room]);
  }

  /** The content of a member's event. */
  async member(room: string, userId: string): Promise<Json> {
    return ((await this.state(room)).get(`m.room.member|${userId}`)?.['content'] ?? {}) as Json;
  }

  /** Makes a room, public unless asked for otherwise. */
  async room(more: Json = {}): Promise<string> {
    const made = await this.do('POST', '/createRoom', { preset: 'public_chat', ...more });
    return made['room_id'] as string;
  }

  join(room: string, via: Member): Promise<Json> {
    return this.do('POST', `/join/${enc(room)}?server_name=${enc(via.name)}&via=${enc(via.name)}`);
  }

  async say(room: string, body: string): Promise<string> {
    return this.send(room, 'm.room.message', { msgtype: 'm.text', body });
  }

  async send(room: string, type: string, content: Json): Promise<string> {
    const path = `/rooms/${enc(room)}/send/${enc(type)}/${Date.now()}-${++transactions}`;
    return (await this.do('PUT', path, content))['event_id'] as string;
  }

  async set(room: string, type: string, content: Json, stateKey = ''): Promise<string> {
    const path = `/rooms/${enc(room)}/state/${enc(type)}/${enc(stateKey)}`;
    return (await this.do('PUT', path, content))['event_id'] as string;
  }

  /** The room's current state: `type|key` to event. */
  async state(room: string): Promise<Map<string, Json>> {
    const events = (await this.do('GET', `/rooms/${enc(room)}/state`)) as unknown as Json[];
    return new Map(events.map((event) => [`${event['type']}|${event['state_key']}`, event]));
  }

  /** The newest events, newest first. */
  async messages(room: string, limit = 100): Promise<Json[]> {
    return (await this.do('GET', `/rooms/${enc(room)}/messages?dir=b&limit=${limit}`))['chunk'] as Json[];
  }

  /** Waits until an event has come. */
  sees(room: string, eventId: string): Promise<Json> {
    return eventually(
      `${eventId} to reach ${this.id}`,
      async () => {
        const { status, body } = await this.call('GET', `/rooms/${enc(room)}/event/${enc(eventId)}`);
        return status === 200 && body;
      },
      patience,
    );
  }
}

export const enc = encodeURIComponent;
