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
  'type',
  'cease to type',
  'ignore',
  'tag',
  'nick',
  'topic',
  'leave',
  'join',
] as const;

export interface BusyStep {
  readonly actor: number;
  readonly room: number;
  readonly action: (typeof actions)[number];
  /** Chooses among what was said, beginning with the newest. */
  readonly pick: number;
  /** Bits: which clients sync after it. */
  readonly watchers: number;
}

/** What people do who talk to each other. @param clients how many look on */
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

/** What happens together. */
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
  ['type', 'read'],
  ['cease to type', 'ignore'],
  ['type', 'say'],
  ['topic', 'leave'],
  ['join', 'say'],
  ['cease to type', 'reply'],
];

/**
 * Everybody does everything, the reader not between the others. After each step everybody looks on; in every other pair
 * only when others than the reader have done both.
 */
export function everyStep(people: number, clients: number): BusyStep[] {
  const actors = Array.from({ length: people }, (_, index) => index);
  const everybody = 2 ** clients - 1;
  return pairs.flatMap(([first, second], pair) => {
    const isDense = pair % 2 === 0;
    const step = (action: Action, actor: number, isSeen: boolean): BusyStep => ({
      actor,
      room: (pair >> 1) % 2,
      action,
      // Somebody is ignored, and later nobody.
      pick: action === 'ignore' ? Number(action === first) : actor,
      watchers: isDense || isSeen ? everybody : 0,
    });
    return [
      ...actors.toReversed().map((actor) => step(first, actor, actor >= people - 2)),
      ...actors.map((actor) => step(second, actor, actor >= people - 3)),
    ];
  });
}

interface Said {
  readonly id: string;
  readonly by: TestClient;
  readonly root: string | undefined;
}

let transactions = 0;

/** Two rooms, and what was said there. */
export class BusyRooms {
  readonly people: readonly TestClient[];
  /** Who may be ignored by the reader, who is the last of the people. */
  readonly mayBeIgnored: readonly TestClient[];
  readonly everIgnored = new Set<string>();
  readonly rooms: readonly string[];
  readonly #said: Said[][] = [[], []];

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
   * Rooms with a past, in which who reads them has been from the beginning and ignores nobody.
   * @param people the host, others, and at the end the two devices of the reader
   * @param silent others after whom the rooms are called
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

  /** What is refused changes nothing. */
  async act({ actor, room, action, pick }: BusyStep): Promise<void> {
    const who = this.people[actor]!;
    const roomId = this.rooms[room]!;
    const said = this.#said[room]!;
    const target = said.at(-1 - (pick % Math.max(1, said.length)));
    const own = said.findLast(({ by }) => by.id === who.id);
    const path = `/rooms/${enc(roomId)}`;
    const send = async (type: string, content: object, root?: string) => {
      const to = `${path}/send/${type}/busy${transactions++}`;
      const { status, body } = await who.call('PUT', to, content);
      if (status === 200) said.push({ id: String(body['event_id']), by: who, root });
    };
    const say = (more: object = {}, root?: string) =>
      send('m.room.message', { msgtype: 'm.text', body: `${action} ${said.length}`, ...more }, root);
    const read = (type: string, more: object = {}) =>
      target && who.call('POST', `${path}/receipt/${type}/${enc(target.id)}`, more);
    const typing = (more: object) => who.call('PUT', `${path}/typing/${enc(who.id)}`, more);
    switch (action) {
      case 'say':
        return say();
      case 'mention':
        return say({ 'm.mentions': { user_ids: [this.reader.id] } });
      case 'edit':
        if (!own) return;
        return say({
          'm.new_content': { msgtype: 'm.text', body: 'new' },
          'm.relates_to': { rel_type: 'm.replace', event_id: own.id },
        });
      case 'react':
        if (!target) return;
        return send('m.reaction', {
          'm.relates_to': { rel_type: 'm.annotation', event_id: target.id, key: `${said.length}` },
        });
      case 'reply': {
        if (!target) return;
        const root = target.root ?? target.id;
        return say({ 'm.relates_to': { rel_type: 'm.thread', event_id: root } }, root);
      }
      case 'redact':
        if (own) await who.call('PUT', `${path}/redact/${enc(own.id)}/busy${transactions++}`, {});
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
      case 'type':
        await typing({ typing: true, timeout: 100_000 });
        return;
      case 'cease to type':
        await typing({ typing: false });
        return;
      case 'ignore':
        return this.#ignore(pick);
      case 'tag':
        await this.reader.call('PUT', `/user/${enc(this.reader.id)}/rooms/${enc(roomId)}/tags/u.${pick}`, {});
        return;
      case 'nick': {
        const content = { membership: 'join', displayname: `${action} ${pick}` };
        await who.call('PUT', `${path}/state/m.room.member/${enc(who.id)}`, content);
        return;
      }
      case 'topic':
        await who.call('PUT', `${path}/state/m.room.topic/`, { topic: `${action} ${pick}` });
        return;
      default:
        if (this.mayBeIgnored.includes(who)) await who.call('POST', `${path}/${action}`, {});
    }
  }

  /** The reader ignores some of those who may be, or nobody. */
  async #ignore(pick: number): Promise<void> {
    const ignored = this.mayBeIgnored.filter((_, index) => pick & (1 << index)).map(({ id }) => id);
    for (const userId of ignored) this.everIgnored.add(userId);
    await this.reader.do('PUT', `/user/${enc(this.reader.id)}/account_data/m.ignored_user_list`, {
      ignored_users: Object.fromEntries(ignored.map((userId) => [userId, {}])),
    });
  }
}
