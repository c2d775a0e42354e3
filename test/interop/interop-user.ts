import assert from 'node:assert/strict';
import { eventually } from '../clients/eventually.ts';
import { registrationSecret } from '../clients/hearth-process.ts';
import { adminRegistrationBody, adminRegistrationPath } from '../support/users/register-admin.ts';
import type { Homeserver } from './interop-network.ts';

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

/** Response of a login or registration. */
type Login = Readonly<Record<'user_id' | 'device_id' | 'access_token', string>>;

type Membership = 'invite' | 'knock' | 'leave' | 'join' | 'ban';

/** Maximum duration of a request, in milliseconds. */
const requestTimeout = 180_000;

/** Maximum number of responses that are remembered for each user for error messages. */
const maxAnswers = 5;

/** Maximum characters of a remembered response. */
const maxAnswerLength = 300;

let transactions = 0;

/** A user of a homeserver, through its client-server API. */
export class InteropUser {
  readonly id: string;
  readonly deviceId: string;
  readonly server: Homeserver;
  /** The last responses, newest last; equal consecutive ones are stored once. */
  readonly lastAnswers: string[] = [];
  /** Access token. */
  readonly token: string;
  #since = '';

  /** A logged-in user. */
  constructor(server: Homeserver, { user_id, device_id, access_token }: Login) {
    this.id = user_id;
    this.deviceId = device_id;
    this.server = server;
    this.token = access_token;
  }

  static async register(server: Homeserver, name: string): Promise<InteropUser> {
    const body = { username: name, password: 'a password', auth: { type: 'm.login.dummy' } };
    const answer = await fetch(`${server.url}/_matrix/client/v3/register`, {
      method: 'POST',
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(requestTimeout),
    });
    const login = (await answer.json()) as Login;
    assert.equal(answer.status, 200, `${name} could not register: ${JSON.stringify(login)}`);
    return new InteropUser(server, login);
  }

  /** Registers a server administrator with the shared secret of the test servers. */
  static async registerAdmin(server: Homeserver, name: string): Promise<InteropUser> {
    const url = `${server.url}${adminRegistrationPath}`;
    const signal = AbortSignal.timeout(requestTimeout);
    const { nonce } = (await (await fetch(url, { signal })).json()) as Json;
    const body = JSON.stringify(adminRegistrationBody(name, nonce, registrationSecret));
    const answer = await fetch(url, { method: 'POST', body, signal });
    const login = (await answer.json()) as Login;
    assert.equal(answer.status, 200, `${name} could not register: ${JSON.stringify(login)}`);
    return new InteropUser(server, login);
  }

  /** Sends a request as this user. @param path below `/_matrix/client/v3`, or a full path when it begins with `/_` */
  fetch(method: string, path: string, init: RequestInit = {}): Promise<Response> {
    const url = `${this.server.url}${path.startsWith('/_') ? '' : '/_matrix/client/v3'}${path}`;
    const headers = { authorization: `Bearer ${this.token}`, ...init.headers };
    const signal = AbortSignal.timeout(requestTimeout);
    return fetch(url, { ...init, method, headers, signal }).catch((cause: unknown) => {
      // Connection errors are passed on, because a scenario may expect them.
      if (!signal.aborted) throw cause;
      throw new Error(`${method} ${path} of ${this.id} was not answered in ${requestTimeout / 1000} s`, {
        cause,
      });
    });
  }

  /** Sends a request with a JSON body. */
  async call(method: string, path: string, body: Json = {}): Promise<{ status: number; body: Json }> {
    const answer = await this.fetch(method, path, method === 'GET' ? {} : { body: JSON.stringify(body) });
    const text = await answer.text();
    this.#remember(`${method} ${path}: ${answer.status} ${text.slice(0, maxAnswerLength)}`);
    return { status: answer.status, body: JSON.parse(text) as Json };
  }

  #remember(answer: string): void {
    if (this.lastAnswers.at(-1) === answer) return;
    this.lastAnswers.push(answer);
    if (this.lastAnswers.length > maxAnswers) this.lastAnswers.shift();
  }

  /** Like `call`, but fails the test unless the status is 200. */
  async do(method: string, path: string, body?: Json): Promise<Json> {
    const answer = await this.call(method, path, body);
    assert.equal(answer.status, 200, `${this.id} ${method} ${path}: ${JSON.stringify(answer.body)}`);
    return answer.body;
  }

  /** Syncs from the last sync on until `find` returns a value for a response, and returns that value. */
  syncUntil<T>(what: string, find: (sync: Sync) => T | undefined | false): Promise<T> {
    return eventually(`${what} in a sync of ${this.id}`, async () => {
      const sync = (await this.do('GET', `/sync?timeout=1000${this.#since}`)) as unknown as Sync;
      this.#since = `&since=${enc(sync.next_batch)}`;
      return find(sync);
    });
  }

  /** Waits until a sync lists the room under this membership. */
  waitForRoom(room: string, membership: 'invite' | 'knock' | 'leave' | 'join'): Promise<SyncedRoom> {
    return this.syncUntil(`${room} as ${membership}`, ({ rooms }) => rooms?.[membership]?.[room]);
  }

  /** Returns the content of a user's member event, or an empty object. */
  async member(room: string, user: InteropUser): Promise<Json> {
    return ((await this.state(room)).get(`m.room.member|${user.id}`)?.['content'] ?? {}) as Json;
  }

  /** Waits until the room state has this membership. */
  async waitForMembership(membership: Membership, user: InteropUser, room: string): Promise<void> {
    await eventually(`${this.id} to see ${membership} of ${user.id}`, async () => {
      return (await this.member(room, user))['membership'] === membership;
    });
  }

  /** Creates a room, public by default. */
  async createRoom(more: Json = {}): Promise<string> {
    const created = await this.do('POST', '/createRoom', { preset: 'public_chat', ...more });
    return created['room_id'] as string;
  }

  /** Creates a room, which the guests join. */
  async createRoomWith(guests: readonly InteropUser[], more: Json = {}): Promise<string> {
    const room = await this.createRoom(more);
    for (const guest of guests) await guest.join(room, this.server);
    return room;
  }

  join(room: string, via: Homeserver): Promise<Json> {
    return this.do('POST', joinPath(room, via));
  }

  leave(room: string): Promise<Json> {
    return this.do('POST', `/rooms/${enc(room)}/leave`);
  }

  invite(user: InteropUser, room: string): Promise<Json> {
    return this.do('POST', `/rooms/${enc(room)}/invite`, { user_id: user.id });
  }

  /** Waits for an invite, and accepts it. */
  async acceptInvite(room: string): Promise<void> {
    await this.waitForRoom(room, 'invite');
    await this.do('POST', `/join/${enc(room)}`);
  }

  async say(room: string, body: string): Promise<string> {
    return this.send(room, 'm.room.message', { msgtype: 'm.text', body });
  }

  async send(room: string, type: string, content: Json): Promise<string> {
    const path = `/rooms/${enc(room)}/send/${enc(type)}/${++transactions}`;
    return (await this.do('PUT', path, content))['event_id'] as string;
  }

  async setState(room: string, type: string, content: Json, stateKey = ''): Promise<string> {
    const path = `/rooms/${enc(room)}/state/${enc(type)}/${enc(stateKey)}`;
    return (await this.do('PUT', path, content))['event_id'] as string;
  }

  /** Sets the power levels of users, and keeps the levels of other users. */
  async setLevels(room: string, levels: Json): Promise<string> {
    const content = (await this.state(room)).get('m.room.power_levels|')?.['content'] as Json;
    const users = { ...(content['users'] as Json), ...levels };
    return this.setState(room, 'm.room.power_levels', { ...content, users });
  }

  /** Waits until the user has this power level. */
  async waitForPowerLevel(room: string, user: InteropUser, level: number): Promise<void> {
    await eventually(`${this.id} to see level ${level} of ${user.id}`, async () => {
      const content = (await this.state(room)).get('m.room.power_levels|')?.['content'] as Json | undefined;
      return (content?.['users'] as Json | undefined)?.[user.id] === level;
    });
  }

  /** Redacts an event. */
  async redact(room: string, eventId: string): Promise<void> {
    await this.do('PUT', `/rooms/${enc(room)}/redact/${enc(eventId)}/${++transactions}`, { reason: 'sorry' });
  }

  /** Returns the room's current state: events by `type|state_key`. */
  async state(room: string): Promise<Map<string, Json>> {
    const events = (await this.do('GET', `/rooms/${enc(room)}/state`)) as unknown as Json[];
    return new Map(events.map((event) => [`${event['type']}|${event['state_key']}`, event]));
  }

  /** Returns the newest events, newest first. */
  async messages(room: string, limit = 100): Promise<Json[]> {
    return (await this.do('GET', `/rooms/${enc(room)}/messages?dir=b&limit=${limit}`))['chunk'] as Json[];
  }

  /** Waits until the user can read the event. */
  waitForEvent(room: string, eventId: string): Promise<Json> {
    return eventually(`${eventId} to reach ${this.id}`, async () => {
      const { status, body } = await this.call('GET', `/rooms/${enc(room)}/event/${enc(eventId)}`);
      return status === 200 && body;
    });
  }

  /** Waits until the room's newest history, which may have to be backfilled, contains all of the events. */
  async waitForHistory(room: string, eventIds: readonly string[]): Promise<void> {
    let missing = eventIds;
    await eventually(`the history of ${room} for ${this.id}`, async () => {
      const received = new Set((await this.messages(room)).map((event) => event['event_id']));
      missing = eventIds.filter((id) => !received.has(id));
      return missing.length === 0;
    }).catch(() => assert.deepEqual(missing, [], `${this.id} lacks events`));
  }
}

export const enc = encodeURIComponent;

export function joinPath(room: string, via: Homeserver): string {
  return `/join/${enc(room)}?server_name=${enc(via.name)}&via=${enc(via.name)}`;
}

export function knockPath(room: string, via: Homeserver): string {
  return `/knock/${enc(room)}?server_name=${enc(via.name)}&via=${enc(via.name)}`;
}
