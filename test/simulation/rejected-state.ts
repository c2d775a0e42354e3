import { loadSigningKey } from '../../src/composition/signing-key.ts';
import {
  type BuiltEvent,
  buildEvent,
  type JsonObject,
  selectAuthEventKeys,
  stateMapKey,
} from '../../src/protocol/index.ts';
import type { StoredEvent } from '../../src/room-engine/index.ts';
import type { LocalAnswer, LocalRequest } from './local-http.ts';
import type { Dice } from './random.ts';
import type { SimulatedServer } from './server.ts';
import type { Trace } from './trace.ts';

const stateIds = /^\/_matrix\/federation\/v1\/state_ids\//;
const singleEvent = /^\/_matrix\/federation\/v1\/event\/([^/?]+)/;

type State = ReadonlyMap<string, StoredEvent>;

/**
 * Changes responses to `/state_ids`: replaces the power levels by an event of a user without the power to send it. The
 * requesting server rejects that event. The state is the same for every server that follows the specification, because
 * a rejected event does not change it.
 */
export class RejectedState {
  readonly #servers: readonly SimulatedServer[];
  readonly #dice: Dice;
  readonly #trace: Trace;
  /** Share of the answers that are changed, from 0 to 1. */
  readonly #chance: number;
  /** Events of users without the power to send them, by the id of the power levels event that each would replace. */
  readonly #replacements = new Map<string, BuiltEvent>();

  constructor(
    servers: readonly SimulatedServer[],
    { dice, trace, chance }: { readonly dice: Dice; readonly trace: Trace; readonly chance: number },
  ) {
    this.#servers = servers;
    this.#dice = dice;
    this.#trace = trace;
    this.#chance = chance;
  }

  /**
   * Returns the answer that the requesting server receives in place of `answer`.
   * @param to the name of the server that receives the request
   */
  async change(to: string, { path }: LocalRequest, answer: LocalAnswer): Promise<LocalAnswer> {
    const eventId = singleEvent.exec(path)?.[1];
    const requested = [...this.#replacements.values()].find(
      ({ event }) => event.eventId === decodeURIComponent(eventId ?? ''),
    );
    if (requested) return withBody(answer, { origin: to, origin_server_ts: 0, pdus: [requested.event.pdu] });
    if (answer.status !== 200 || !stateIds.test(path) || !this.#dice.chance(this.#chance)) return answer;
    const server = this.#servers.find(({ name }) => name === to);
    if (!server?.run) return answer;
    const body = JSON.parse(answer.body.toString()) as { pdu_ids: string[]; auth_chain_ids: string[] };
    const found = await server.run.rooms.engine.events.getManyById(body.pdu_ids);
    const state = new Map(
      [...found.values()].map((stored) => [
        stateMapKey(stored.event.type, stored.event.stateKey ?? ''),
        stored,
      ]),
    );
    const levels = state.get(powerLevels);
    const replacement =
      levels &&
      (this.#replacements.get(levels.event.eventId) ?? (await this.#buildReplacement(state, levels)));
    if (!replacement) return answer;
    this.#replacements.set(levels.event.eventId, replacement);
    this.#trace.note(to, `names rejected power levels ${replacement.event.eventId} in a state`);
    const otherEventIds = body.pdu_ids.filter((id) => id !== levels.event.eventId);
    return withBody(answer, {
      pdu_ids: [...otherEventIds, replacement.event.eventId],
      auth_chain_ids: [...new Set([...body.auth_chain_ids, levels.event.eventId])],
    });
  }

  /** Builds power levels by a user who may not send them; `undefined` without such a user. */
  async #buildReplacement(state: State, levels: StoredEvent): Promise<BuiltEvent | undefined> {
    const { version, roomId, depth, eventId, content, originServerTs } = levels.event;
    const users = content['users'] as JsonObject | undefined;
    const creator = state.get(stateMapKey('m.room.create', ''))?.event.sender;
    const isPowerless = (userId: string) => users?.[userId] === undefined && userId !== creator;
    const server = this.#servers.find(({ run, users: localUsers }) => run && localUsers.some(isPowerless));
    const sender = server?.users.find(isPowerless);
    // In room versions 1 and 2 the server would have to choose event ids and hash the references.
    if (!server?.run || sender === undefined || version.eventId === 'origin') return undefined;
    const key = await loadSigningKey(server.run.kernel);
    const subject = {
      type: 'm.room.power_levels',
      stateKey: '',
      sender,
      content: { ...content, users: { ...users, [sender]: 100 } },
    };
    return buildEvent(
      {
        ...subject,
        roomId,
        depth: depth + 1,
        originServerTs,
        prevEventIds: [eventId],
        authEventIds: selectAuthEventKeys(subject, version)
          .map((name) => state.get(name)?.event.eventId)
          .filter((id) => id !== undefined),
      },
      version,
      { serverName: server.name, key },
    );
  }
}

const powerLevels = stateMapKey('m.room.power_levels', '');

function withBody(answer: LocalAnswer, json: JsonObject): LocalAnswer {
  const body = Buffer.from(JSON.stringify(json));
  const length = 'content-length' in answer.headers && { 'content-length': String(body.length) };
  return { status: 200, headers: { ...answer.headers, 'content-type': 'application/json', ...length }, body };
}
