import assert from 'node:assert/strict';
import type { ApiAnswer, TestServer, TestUser } from '../servers/server.ts';

/** An event in the format of the client-server API. */
export interface SeenEvent {
  readonly event_id: string;
  readonly sender: string;
  readonly type: string;
  readonly content: Record<string, unknown>;
  readonly unsigned?: { readonly 'm.relations'?: Record<string, unknown>; readonly [key: string]: unknown };
}

let transactions = 0;

/** A room of a test server, with the requests that users send about it. */
export class TestRoom {
  readonly server: TestServer;
  readonly roomId: string;

  private constructor(server: TestServer, roomId: string) {
    this.server = server;
    this.roomId = roomId;
  }

  /**
   * Creates a room that `others` join.
   * @param creation the body of `POST /createRoom`, by default a public room
   */
  static async create(
    server: TestServer,
    creator: TestUser,
    others: readonly TestUser[] = [],
    creation: object = { preset: 'public_chat' },
  ): Promise<TestRoom> {
    const answer = await server.api('POST', '/_matrix/client/v3/createRoom', {
      token: creator.token,
      body: creation,
    });
    assert.equal(answer.status, 200, answer.raw);
    const room = new TestRoom(server, String(answer.body['room_id']));
    for (const user of others) await room.join(user);
    return room;
  }

  /** Wraps a room that exists already. */
  static existing(server: TestServer, roomId: string): TestRoom {
    return new TestRoom(server, roomId);
  }

  /**
   * Sends a request about the room.
   * @param path below `/rooms/{roomId}`; `version` is the version of the API, by default v3
   */
  call(
    user: TestUser,
    method: string,
    path: string,
    {
      body,
      query,
      version = 'v3',
    }: { body?: unknown; query?: Record<string, string | number | boolean>; version?: string } = {},
  ): Promise<ApiAnswer> {
    const url = `/_matrix/client/${version}/rooms/${encodeURIComponent(this.roomId)}${path}`;
    return this.server.api(method, url, {
      token: user.token,
      ...(body === undefined ? undefined : { body }),
      ...(query && { query }),
    });
  }

  async join(user: TestUser): Promise<void> {
    const answer = await this.call(user, 'POST', '/join', { body: {} });
    assert.equal(answer.status, 200, answer.raw);
  }

  async leave(user: TestUser): Promise<void> {
    const answer = await this.call(user, 'POST', '/leave', { body: {} });
    assert.equal(answer.status, 200, answer.raw);
  }

  /** Sends an event. @returns the event id */
  async send(user: TestUser, type: string, content: object): Promise<string> {
    const answer = await this.trySend(user, type, content);
    assert.equal(answer.status, 200, answer.raw);
    return String(answer.body['event_id']);
  }

  trySend(user: TestUser, type: string, content: object): Promise<ApiAnswer> {
    return this.call(user, 'PUT', `/send/${type}/talk${transactions++}`, { body: content });
  }

  /** Sends a text message. @param more further fields of its content */
  say(user: TestUser, body: string, more: object = {}): Promise<string> {
    return this.send(user, 'm.room.message', { msgtype: 'm.text', body, ...more });
  }

  /** Sends a text message that relates to an event. */
  relate(
    user: TestUser,
    relType: string,
    eventId: string,
    body = relType,
    more: object = {},
  ): Promise<string> {
    return this.say(user, body, { 'm.relates_to': { rel_type: relType, event_id: eventId }, ...more });
  }

  edit(user: TestUser, eventId: string, body: string): Promise<string> {
    const content = { 'm.new_content': { msgtype: 'm.text', body } };
    return this.relate(user, 'm.replace', eventId, `* ${body}`, content);
  }

  react(user: TestUser, eventId: string, key: string): Promise<string> {
    return this.send(user, 'm.reaction', {
      'm.relates_to': { rel_type: 'm.annotation', event_id: eventId, key },
    });
  }

  async redact(user: TestUser, eventId: string): Promise<string> {
    const path = `/redact/${encodeURIComponent(eventId)}/talk${transactions++}`;
    const answer = await this.call(user, 'PUT', path, { body: {} });
    assert.equal(answer.status, 200, answer.raw);
    return String(answer.body['event_id']);
  }

  async setState(user: TestUser, type: string, content: object, stateKey = ''): Promise<string> {
    const answer = await this.call(user, 'PUT', `/state/${type}/${encodeURIComponent(stateKey)}`, {
      body: content,
    });
    assert.equal(answer.status, 200, answer.raw);
    return String(answer.body['event_id']);
  }

  /** Returns an event as the user sees it. */
  async event(user: TestUser, eventId: string): Promise<SeenEvent> {
    const answer = await this.call(user, 'GET', `/event/${encodeURIComponent(eventId)}`);
    assert.equal(answer.status, 200, answer.raw);
    return answer.body as unknown as SeenEvent;
  }

  /** Returns the content of a state event. */
  async state(user: TestUser, type: string, stateKey = ''): Promise<Record<string, unknown>> {
    const answer = await this.call(user, 'GET', `/state/${type}/${encodeURIComponent(stateKey)}`);
    assert.equal(answer.status, 200, answer.raw);
    return answer.body;
  }
}

/** The events of a response with a `chunk`. */
export const chunkOf = ({ body, raw, status }: ApiAnswer): SeenEvent[] => {
  assert.equal(status, 200, raw);
  return body['chunk'] as SeenEvent[];
};

/** The ids of the events of a response with a `chunk`. */
export const idsOf = (answer: ApiAnswer): string[] => chunkOf(answer).map(({ event_id }) => event_id);
