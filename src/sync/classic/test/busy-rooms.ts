import fc from 'fast-check';
import { enc, type TestClient } from '../../../../test/support/users/test-client.ts';

const actions = [
  'say',
  'say',
  'say',
  'mention',
  'edit',
  'react',
  'reply',
  'reply',
  'redact',
  'read',
  'read in private',
  'read in thread',
  'start typing',
  'stop typing',
  'ignore',
  'tag',
  'nick',
  'topic',
  'leave',
  'join',
] as const;

/** An action of a user in a room, and the clients that sync after it. */
export interface BusyStep {
  /** Index of the user's device in `BusyRooms.people`. */
  readonly actor: number;
  /** Index of the room in `BusyRooms.rooms`. */
  readonly room: number;
  readonly action: (typeof actions)[number];
  /**
   * Chooses one of the sent events, counted from the newest. For `ignore`, the bit mask of the ignored users; for `tag`,
   * `nick` and `topic`, a number in the new value.
   */
  readonly pick: number;
  /** Bit mask of the clients that sync after this step. */
  readonly watchers: number;
}

/** Random actions of users in rooms. @param clients number of clients that may sync after each action */
export const busySteps = (people: number, clients: number): fc.Arbitrary<BusyStep[]> =>
  fc.array(
    fc.record({
      actor: fc.nat(people - 1),
      room: fc.nat(1),
      action: fc.constantFrom(...actions),
      pick: fc.nat(1000),
      watchers: fc.nat(2 ** clients - 1),
    }),
    { minLength: 15, maxLength: 40 },
  );

type Action = BusyStep['action'];

/** Pairs of actions that follow each other. */
const pairs: readonly (readonly [Action, Action])[] = [
  ['say', 'mention'],
  ['say', 'react'],
  ['reply', 'react'],
  ['tag', 'say'],
  ['read', 'read in private'],
  ['say', 'edit'],
  ['reply', 'read in thread'],
  ['say', 'reply'],
  ['redact', 'nick'],
  ['say', 'redact'],
  ['ignore', 'say'],
  ['start typing', 'read'],
  ['stop typing', 'ignore'],
  ['start typing', 'say'],
  ['topic', 'leave'],
  ['join', 'say'],
  ['stop typing', 'reply'],
];

/**
 * Returns steps for each pair of actions: all users do the first action, the last user first, and then the second action,
 * the first user first. In every second pair all clients sync after each step. In the other pairs they sync only after
 * the steps of the last two or three users, so that the first users do both actions between two syncs.
 */
export function everyStep(people: number, clients: number): BusyStep[] {
  const actors = Array.from({ length: people }, (_, index) => index);
  const allClients = 2 ** clients - 1;
  return pairs.flatMap(([first, second], pair) => {
    const syncsAlways = pair % 2 === 0;
    const step = (action: Action, actor: number, isSeen: boolean): BusyStep => ({
      actor,
      room: (pair >> 1) % 2,
      action,
      // As the first action of a pair, the reader ignores one user. As the second action, the reader ignores none.
      pick: action === 'ignore' ? Number(action === first) : actor,
      watchers: syncsAlways || isSeen ? allClients : 0,
    });
    return [
      ...actors.toReversed().map((actor) => step(first, actor, actor >= people - 2)),
      ...actors.map((actor) => step(second, actor, actor >= people - 3)),
    ];
  });
}

interface SentEvent {
  readonly id: string;
  readonly sender: TestClient;
  /** Id of the thread root, if the event is in a thread. */
  readonly root: string | undefined;
}

/** An action of a user in a room, with the events that it may concern. */
interface Turn {
  readonly client: TestClient;
  readonly roomId: string;
  readonly action: Action;
  /** As in `BusyStep`. */
  readonly pick: number;
  /** The events that were sent in the room, oldest first. */
  readonly sent: SentEvent[];
  /** The event that `pick` chooses. */
  readonly target: SentEvent | undefined;
  readonly lastEventOfClient: SentEvent | undefined;
}

let transactions = 0;

/** Two rooms, and the events that were sent in them. */
export class BusyRooms {
  readonly people: readonly TestClient[];
  /** The users whom the reader, the last of `people`, may ignore. */
  readonly mayBeIgnored: readonly TestClient[];
  readonly everIgnored = new Set<string>();
  readonly rooms: readonly string[];
  readonly #sent: SentEvent[][] = [[], []];

  private constructor(
    people: readonly TestClient[],
    rooms: readonly string[],
    mayBeIgnored: readonly TestClient[],
  ) {
    this.people = people;
    this.rooms = rooms;
    this.mayBeIgnored = mayBeIgnored;
  }

  /**
   * Opens rooms that have a history and that the reader joined before it. The reader ignores no user.
   * @param people the creator, other users, and at the end the two devices of the reader
   * @param silent other users, who are the heroes of the rooms
   */
  static async open(people: readonly TestClient[], silent: readonly TestClient[]): Promise<BusyRooms> {
    const [host, ...guests] = people;
    const rooms = [await host!.createRoom(), await host!.createRoom()];
    for (const roomId of rooms) {
      for (const guest of [...silent, ...guests.slice(0, -1)]) await guest.join(roomId);
      for (let count = 0; count < 12; count++) await host!.say(roomId, 'a long time ago');
    }
    const busy = new BusyRooms(people, rooms, guests.slice(0, -2));
    await busy.#ignore(0);
    return busy;
  }

  get reader(): TestClient {
    return this.people.at(-1)!;
  }

  /** Runs the action of a step; an action that the server rejects changes nothing. */
  async act({ actor, room, action, pick }: BusyStep): Promise<void> {
    const client = this.people[actor]!;
    const roomId = this.rooms[room]!;
    const sent = this.#sent[room]!;
    const target = sent.at(-1 - (pick % Math.max(1, sent.length)));
    const lastEventOfClient = sent.findLast(({ sender }) => sender.id === client.id);
    const turn = { client, roomId, action, pick, sent, target, lastEventOfClient };
    const say = (more: object = {}, root?: string) =>
      send(turn, 'm.room.message', { msgtype: 'm.text', body: `${action} ${sent.length}`, ...more }, root);
    switch (action) {
      case 'say':
        return say();
      case 'mention':
        return say({ 'm.mentions': { user_ids: [this.reader.id] } });
      case 'edit':
        if (!lastEventOfClient) return;
        return say({
          'm.new_content': { msgtype: 'm.text', body: 'new' },
          'm.relates_to': { rel_type: 'm.replace', event_id: lastEventOfClient.id },
        });
      case 'react':
        if (!target) return;
        return send(turn, 'm.reaction', {
          'm.relates_to': { rel_type: 'm.annotation', event_id: target.id, key: `${sent.length}` },
        });
      case 'reply': {
        if (!target) return;
        const root = target.root ?? target.id;
        return say({ 'm.relates_to': { rel_type: 'm.thread', event_id: root } }, root);
      }
      default:
        return this.#actWithoutMessage(turn);
    }
  }

  /** Runs an action that does not add to the sent events. */
  async #actWithoutMessage({ client, roomId, action, pick, target, lastEventOfClient }: Turn): Promise<void> {
    const path = `/rooms/${enc(roomId)}`;
    const read = (type: string, more: object = {}) =>
      target && client.call('POST', `${path}/receipt/${type}/${enc(target.id)}`, more);
    const typing = (more: object) => client.call('PUT', `${path}/typing/${enc(client.id)}`, more);
    switch (action) {
      case 'redact':
        if (lastEventOfClient)
          await client.call('PUT', `${path}/redact/${enc(lastEventOfClient.id)}/busy${transactions++}`, {});
        return;
      case 'read':
        await read('m.read');
        return;
      case 'read in private':
        await read('m.read.private');
        return;
      case 'read in thread':
        await read('m.read', { thread_id: target?.root ?? 'main' });
        return;
      case 'start typing':
        await typing({ typing: true, timeout: 100_000 });
        return;
      case 'stop typing':
        await typing({ typing: false });
        return;
      case 'ignore':
        return this.#ignore(pick);
      case 'tag':
        await this.reader.call('PUT', `/user/${enc(this.reader.id)}/rooms/${enc(roomId)}/tags/u.${pick}`, {});
        return;
      case 'nick': {
        const content = { membership: 'join', displayname: `${action} ${pick}` };
        await client.call('PUT', `${path}/state/m.room.member/${enc(client.id)}`, content);
        return;
      }
      case 'topic':
        await client.call('PUT', `${path}/state/m.room.topic/`, { topic: `${action} ${pick}` });
        return;
      // The users who may be ignored may also leave and join; the creator and the reader stay.
      default:
        if (this.mayBeIgnored.includes(client)) await client.call('POST', `${path}/${action}`, {});
    }
  }

  /** Makes the reader ignore the users whose bits are set in `pick`, and no other users. */
  async #ignore(pick: number): Promise<void> {
    const ignored = this.mayBeIgnored.filter((_, index) => pick & (1 << index)).map(({ id }) => id);
    for (const userId of ignored) this.everIgnored.add(userId);
    await this.reader.do('PUT', `/user/${enc(this.reader.id)}/account_data/m.ignored_user_list`, {
      ignored_users: Object.fromEntries(ignored.map((userId) => [userId, {}])),
    });
  }
}

/** Sends an event, and adds it to the sent events if the server accepts it. */
async function send(
  { client, roomId, sent }: Turn,
  type: string,
  content: object,
  root?: string,
): Promise<void> {
  const path = `/rooms/${enc(roomId)}/send/${type}/busy${transactions++}`;
  const { status, body } = await client.call('PUT', path, content);
  if (status === 200) sent.push({ id: String(body['event_id']), sender: client, root });
}
