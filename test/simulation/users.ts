import { isJsonObject, type JsonObject, serverOfUser } from '../../src/protocol/index.ts';
import type { Rooms } from '../../src/rooms/index.ts';
import { attempt } from './attempt.ts';
import type { ActionName } from './plan.ts';
import type { Dice } from './random.ts';
import type { SimulatedServer } from './server.ts';
import type { Run } from './server-process.ts';
import type { World } from './world.ts';

/** An event whose sending was acknowledged to the client. */
export interface Acknowledged {
  readonly eventId: string;
  readonly server: string;
  /** When the client sent the request, in simulated milliseconds. */
  readonly at: number;
}

/** An invite or knock that was ended by its user's leave event. */
export interface EndedMembership {
  readonly userId: string;
  /** Event id of the invite or knock. */
  readonly ended: string;
  /** Event id of the leave event. */
  readonly endedBy: string;
}

/** Milliseconds that the actions of a burst are spread over. */
const burstLength = 3_000;

const encryption = {
  type: 'm.room.encryption',
  state_key: '',
  content: { algorithm: 'm.megolm.v1.aes-sha2' },
};

const joinRules = { type: 'm.room.join_rules', state_key: '' };

/** Users that act in one room at random. */
export class Users {
  readonly acknowledged: Acknowledged[] = [];
  /** Invites that were rejected and knocks that were withdrawn. */
  readonly endedMemberships: EndedMembership[] = [];
  roomId = '';
  readonly #world: World;
  readonly #dice: Dice;
  #transactions = 0;

  constructor(world: World) {
    this.#world = world;
    this.#dice = world.dice.fork('users');
  }

  get allUserIds(): readonly string[] {
    return this.#world.servers.flatMap(({ users }) => users);
  }

  /** The first user creates the room; some other users are assigned a power level at once. All users try to join. */
  async makeRoom(): Promise<void> {
    const { plan, servers } = this.#world;
    const [creator = '', ...others] = this.allUserIds;
    const users: Record<string, number> = plan.roomVersion === '12' ? {} : { [creator]: 100 };
    for (const userId of others) if (this.#dice.chance(0.4)) users[userId] = this.#dice.pick([50, 100]);
    this.roomId = await servers[0]!.run!.rooms.creation.create(creator, {
      preset: plan.isPublic ? 'public_chat' : 'private_chat',
      room_version: plan.roomVersion,
      power_level_content_override: { users },
      initial_state: [
        ...(plan.isEncrypted ? [encryption] : []),
        ...(plan.isPublic ? [] : [{ ...joinRules, content: { join_rule: 'knock' } }]),
      ],
    });
    this.#world.trace.note(servers[0]!.name, `${creator} makes ${this.roomId}: ${JSON.stringify(users)}`);
    for (const userId of others) {
      if (plan.isPublic) continue;
      const homeServer = servers.find(({ users: ofServer }) => ofServer.includes(userId))!;
      if (this.#dice.chance(0.5)) await this.act(homeServer, userId, 'knock');
      if (this.#dice.chance(0.2)) await this.act(homeServer, userId, 'endInviteOrKnock');
      await this.act(servers[0]!, creator, 'invite', userId);
      if (this.#dice.chance(0.2)) await this.act(homeServer, userId, 'endInviteOrKnock');
    }
    for (const server of servers) {
      for (const userId of server.users) await this.act(server, userId, 'join');
    }
  }

  /** Runs the planned number of random actions until the plan's duration is over. */
  async runActions(): Promise<void> {
    const { plan, scheduler, servers } = this.#world;
    const actions: Promise<void>[] = [];
    for (let index = 0; index < plan.actions; index++) {
      const isInBurst = this.#dice.chance(0.6);
      const at = isInBurst
        ? this.#dice.pick(plan.bursts) + this.#dice.skewed(burstLength)
        : this.#dice.next() * plan.duration;
      const server = this.#dice.pick(servers);
      const userId = this.#dice.pick(server.users);
      const name = this.#dice.weighted(plan.actionWeights);
      actions.push(scheduler.sleep(at).then(() => this.act(server, userId, name)));
    }
    await Promise.all(actions);
  }

  /** Makes the users of each server that is not in the room try to join. */
  async joinAllServers(): Promise<void> {
    for (const server of this.#world.servers) {
      const head = await server.run?.rooms.engine.heads.get(this.roomId);
      if (head?.servers.has(server.name)) continue;
      for (const userId of server.users) await this.act(server, userId, 'join');
    }
  }

  /** Performs an action of a user, if the server runs. Never rejects. */
  async act(server: SimulatedServer, userId: string, name: ActionName, target?: string): Promise<void> {
    const { trace, scheduler } = this.#world;
    const { run } = server;
    if (!run) return;
    const at = scheduler.now;
    const other = target ?? this.#dice.pick(this.allUserIds);
    const what = `${userId} ${name}${needsTarget.has(name) ? ` ${other}` : ''}`;
    const answer = await attempt(this.#world, server, what, () => this.#do(run, userId, name, other));
    if (typeof answer === 'string' || answer.value === '') return;
    trace.note(server.name, `${what}: ${answer.value}`);
    this.acknowledged.push({ eventId: answer.value, server: server.name, at });
  }

  /** @returns the event id, or the empty string when there is nothing to do */
  async #do({ rooms, kernel }: Run, userId: string, name: ActionName, other: string): Promise<string> {
    const { roomId } = this;
    const head = await rooms.engine.heads.get(roomId);
    const { memberships } = rooms;
    const localUserIds = this.allUserIds.filter((one) => serverOfUser(one) === kernel.serverName);
    if (name === 'join') {
      const via = this.#world.servers.map((server) => server.name);
      return (await memberships.join(userId, roomId, { via })).event.eventId;
    }
    if (name === 'knock') {
      const via = this.#world.servers.map((server) => server.name);
      const knocker = localUserIds.find((one) => head?.membership(one) !== 'join') ?? userId;
      return (await memberships.knock(knocker, roomId, { via })).event.eventId;
    }
    if (!head) return '';
    switch (name) {
      case 'leave':
        // The first user stays, so that users can be invited again.
        if (userId === this.allUserIds[0]) return '';
        return (await memberships.leave(userId, roomId)).event.eventId;
      case 'endInviteOrKnock':
        return this.#endInviteOrKnock(rooms, localUserIds);
      case 'kick':
      case 'ban':
      case 'unban':
      case 'invite':
        return (await memberships[name](userId, roomId, other)).event.eventId;
      case 'redact':
        return this.#redact(rooms, userId);
      case 'message':
        return this.#send(rooms, userId, { msgtype: 'm.text', body: `${this.#transactions}` });
      case 'topic':
        return this.#state(rooms, userId, 'm.room.topic', { topic: `${userId} ${this.#transactions++}` });
      case 'note':
        return this.#state(
          rooms,
          userId,
          'sim.note',
          { text: `${this.#transactions++}` },
          this.#dice.pick(['1', '2']),
        );
      case 'joinRules':
        return this.#state(rooms, userId, 'm.room.join_rules', {
          join_rule: this.#dice.pick(['public', 'public', 'invite', 'knock', 'knock']),
        });
      case 'power':
        return this.#power(rooms, userId, other);
      default:
        throw new Error(`unknown action ${name}`);
    }
  }

  /** Rejects the invite or withdraws the knock of the first of these users who has an invite or a knock. */
  async #endInviteOrKnock(rooms: Rooms, userIds: readonly string[]): Promise<string> {
    for (const userId of userIds) {
      const room = (await rooms.engine.userRooms.of(userId)).get(this.roomId);
      if (room?.membership !== 'invite' && room?.membership !== 'knock') continue;
      const ended = await rooms.engine.events.get(room.eventNid);
      const left = await rooms.memberships.leave(userId, this.roomId);
      if (ended)
        this.endedMemberships.push({ userId, ended: ended.event.eventId, endedBy: left.event.eventId });
      return left.event.eventId;
    }
    return '';
  }

  #send(rooms: Rooms, userId: string, content: JsonObject): Promise<string> {
    const message = { type: 'm.room.message', content };
    return rooms.sending.message(senderOf(userId), this.roomId, message, `t${this.#transactions++}`);
  }

  #state(rooms: Rooms, userId: string, type: string, content: JsonObject, stateKey = ''): Promise<string> {
    return rooms.sending.state(senderOf(userId), this.roomId, { type, stateKey }, content);
  }

  async #redact(rooms: Rooms, userId: string): Promise<string> {
    const head = await rooms.engine.heads.get(this.roomId);
    const target = head?.recent.filter(({ event }) => event.stateKey === undefined).at(-this.#dice.int(1, 5));
    if (!target) return '';
    const { eventId } = target.event;
    return rooms.sending.redact(senderOf(userId), this.roomId, eventId, {}, `t${this.#transactions++}`);
  }

  /** Changes the power level of a user, or the level that an action requires. */
  async #power(rooms: Rooms, userId: string, other: string): Promise<string> {
    const head = await rooms.engine.heads.get(this.roomId);
    const entry = head?.entry('m.room.power_levels', '');
    const stored = entry && (await rooms.engine.events.get(entry.nid));
    if (!stored) return '';
    const { content } = stored.event;
    const users = isJsonObject(content['users']) ? content['users'] : {};
    const change: JsonObject = this.#dice.chance(0.7)
      ? { users: { ...users, [other]: this.#dice.pick([0, 50, 50, 100]) } }
      : { [this.#dice.pick(['ban', 'kick', 'invite', 'state_default'])]: this.#dice.pick([0, 50]) };
    return this.#state(rooms, userId, 'm.room.power_levels', { ...content, ...change });
  }
}

const needsTarget: ReadonlySet<ActionName> = new Set(['kick', 'ban', 'unban', 'invite', 'power']);

const senderOf = (userId: string) => ({ userId, deviceId: 'DEVICE' });
