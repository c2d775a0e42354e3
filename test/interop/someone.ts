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
  readonly presence?: { readonly events: readonly Json[] };
  readonly device_lists?: { readonly changed?: readonly string[]; readonly left?: readonly string[] };
  readonly rooms?: Readonly<Record<string, Readonly<Record<string, SyncedRoom>>>>;
}

/** What a server answers to who logs in. */
type Login = Readonly<Record<'user_id' | 'device_id' | 'access_token', string>>;

type Membership = 'invite' | 'knock' | 'leave' | 'join' | 'ban';

/** Milliseconds that any request may take. */
const requestTimeout = 180_000;

/** Answers that are kept of each person's, for who wants to know why something did not come; characters of each. */
const [maxAnswers, longestAnswer] = [5, 300];

let transactions = 0;

/** A user of a homeserver, whoever made it, through its client-server API. */
export class Someone {
  readonly id: string;
  readonly deviceId: string;
  readonly server: Member;
  /** What was answered last, the newest last: same answers to the same request count as one. */
  readonly lastAnswers: string[] = [];
  readonly #token: string;
  #since = '';

  /** Somebody who is logged in. */
  constructor(server: Member, { user_id, device_id, access_token }: Login) {
    this.id = user_id;
    this.deviceId = device_id;
    this.server = server;
    this.#token = access_token;
  }

  static async register(server: Member, name: string): Promise<Someone> {
    const body = { username: name, password: 'a password', auth: { type: 'm.login.dummy' } };
    const answer = await fetch(`${server.url}/_matrix/client/v3/register`, {
      method: 'POST',
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(requestTimeout),
    });
    const login = (await answer.json()) as Login;
    assert.equal(answer.status, 200, `${name} could not register: ${JSON.stringify(login)}`);
    return new Someone(server, login);
  }

  /** @param path below `/_matrix/client/v3`, or the whole of it when it begins with `/_` */
  fetch(method: string, path: string, init: RequestInit = {}): Promise<Response> {
    const url = `${this.server.url}${path.startsWith('/_') ? '' : '/_matrix/client/v3'}${path}`;
    const headers = { authorization: `Bearer ${this.#token}`, ...init.headers };
    const signal = AbortSignal.timeout(requestTimeout);
    return fetch(url, { ...init, method, headers, signal }).catch((cause: unknown) => {
      // What says of itself that there was no connection is for the scenario, which may have expected that.
      if (!signal.aborted) throw cause;
      throw new Error(`${method} ${path} of ${this.id} was not answered in ${requestTimeout / 1000} s`, {
        cause,
      });
    });
  }

  /** A request with JSON. */
  async call(method: string, path: string, body: Json = {}): Promise<{ status: number; body: Json }> {
    const answer = await this.fetch(method, path, method === 'GET' ? {} : { body: JSON.stringify(body) });
    const text = await answer.text();
    this.#note(`${method} ${path}: ${answer.status} ${text.slice(0, longestAnswer)}`);
    return { status: answer.status, body: JSON.parse(text) as Json };
  }

  #note(answer: string): void {
    if (this.lastAnswers.at(-1) === answer) return;
    this.lastAnswers.push(answer);
    if (this.lastAnswers.length > maxAnswers) this.lastAnswers.shift();
  }

  /** As `call`, where nothing but success will do. */
  async do(method: string, path: string, body?: Json): Promise<Json> {
    const answer = await this.call(method, path, body);
    assert.equal(answer.status, 200, `${this.id} ${method} ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  /** Syncs on from where the last one ended, until one has what is looked for. */
  synced<T>(what: string, look: (sync: Sync) => T | undefined | false): Promise<T> {
    return eventually(`${what} in a sync of ${this.id}`, async () => {
      const sync = (await this.do('GET', `/sync?timeout=1000${this.#since}`)) as unknown as Sync;
      this.#since = `&since=${enc(sync.next_batch)}`;
      return look(sync);
    });
  }

  /** Waits until a sync tells of a room under that membership. */
  listed(room: string, membership: 'invite' | 'knock' | 'leave' | 'join'): Promise<SyncedRoom> {
    return this.synced(`${room} as ${membership}`, ({ rooms }) => rooms?.[membership]?.[room]);
  }

  /** The content of a member's event. */
  async member(room: string, person: Someone): Promise<Json> {
    return ((await this.state(room)).get(`m.room.member|${person.id}`)?.['content'] ?? {}) as Json;
  }

  /** Waits until the room's state has that membership. */
  async seesAs(membership: Membership, person: Someone, room: string): Promise<void> {
    await eventually(`${this.id} to see ${membership} of ${person.id}`, async () => {
      return (await this.member(room, person))['membership'] === membership;
    });
  }

  /** Makes a room, public unless asked for otherwise. */
  async room(more: Json = {}): Promise<string> {
    const made = await this.do('POST', '/createRoom', { preset: 'public_chat', ...more });
    return made['room_id'] as string;
  }

  /** Makes a room, which others join. */
  async roomWith(guests: readonly Someone[], more: Json = {}): Promise<string> {
    const room = await this.room(more);
    for (const guest of guests) await guest.join(room, this.server);
    return room;
  }

  join(room: string, via: Member): Promise<Json> {
    return this.do('POST', joinPath(room, via));
  }

  leave(room: string): Promise<Json> {
    return this.do('POST', `/rooms/${enc(room)}/leave`);
  }

  invite(person: Someone, room: string): Promise<Json> {
    return this.do('POST', `/rooms/${enc(room)}/invite`, { user_id: person.id });
  }

  /** Waits for an invite, and accepts it. */
  async accept(room: string): Promise<void> {
    await this.listed(room, 'invite');
    await this.do('POST', `/join/${enc(room)}`);
  }

  async say(room: string, body: string): Promise<string> {
    return this.send(room, 'm.room.message', { msgtype: 'm.text', body });
  }

  async send(room: string, type: string, content: Json): Promise<string> {
    const path = `/rooms/${enc(room)}/send/${enc(type)}/${++transactions}`;
    return (await this.do('PUT', path, content))['event_id'] as string;
  }

  async set(room: string, type: string, content: Json, stateKey = ''): Promise<string> {
    const path = `/rooms/${enc(room)}/state/${enc(type)}/${enc(stateKey)}`;
    return (await this.do('PUT', path, content))['event_id'] as string;
  }

  /** Gives people levels in a room, where others keep theirs. */
  async setLevels(room: string, levels: Json): Promise<string> {
    const content = (await this.state(room)).get('m.room.power_levels|')?.['content'] as Json;
    const users = { ...(content['users'] as Json), ...levels };
    return this.set(room, 'm.room.power_levels', { ...content, users });
  }

  /** Waits until the room's power levels give somebody that one. */
  async seesLevel(room: string, person: Someone, level: number): Promise<void> {
    await eventually(`${this.id} to see level ${level} of ${person.id}`, async () => {
      const content = (await this.state(room)).get('m.room.power_levels|')?.['content'] as Json | undefined;
      return (content?.['users'] as Json | undefined)?.[person.id] === level;
    });
  }

  /** Empties an event. */
  async redact(room: string, eventId: string): Promise<void> {
    await this.do('PUT', `/rooms/${enc(room)}/redact/${enc(eventId)}/${++transactions}`, { reason: 'sorry' });
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
    return eventually(`${eventId} to reach ${this.id}`, async () => {
      const { status, body } = await this.call('GET', `/rooms/${enc(room)}/event/${enc(eventId)}`);
      return status === 200 && body;
    });
  }

  /** Waits until all of the events are in the room's newest history, which may have to be fetched. */
  async reads(room: string, eventIds: readonly string[]): Promise<void> {
    let missing = eventIds;
    await eventually(`the history of ${room} that ${this.id} reads`, async () => {
      const seen = new Set((await this.messages(room)).map((event) => event['event_id']));
      missing = eventIds.filter((id) => !seen.has(id));
      return missing.length === 0;
    }).catch(() => assert.deepEqual(missing, [], `${this.id} does not read everything`));
  }
}

export const enc = encodeURIComponent;

export function joinPath(room: string, via: Member): string {
  return `/join/${enc(room)}?server_name=${enc(via.name)}&via=${enc(via.name)}`;
}

export function knockPath(room: string, via: Member): string {
  return `/knock/${enc(room)}?server_name=${enc(via.name)}&via=${enc(via.name)}`;
}
