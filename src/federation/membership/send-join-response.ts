import type { Reply } from '../../kernel/http/index.ts';
import {
  membershipOf,
  type SummaryMember,
  selectHeroes,
  splitStateMapKey,
  stateMapKey,
} from '../../protocol/index.ts';
import { type StreamedListsOptions, streamedLists } from '../streamed-lists.ts';
import type { HandshakeDeps } from './handshake-deps.ts';
import type { AcceptedEvent } from './submitted-events.ts';

export interface SendJoinResponseOptions {
  /** Omits member events except for heroes from the state, and omits from the auth chain the events of the sent state. */
  readonly omitMembers: boolean;
  /** Text before and after the JSON object. */
  readonly around?: NonNullable<StreamedListsOptions['around']>;
}

/**
 * Streams the response of send_join: the state before the join, and the auth chain of this state and of the join.
 * Source: server-server API, `PUT /v2/send_join`.
 */
export async function sendJoinResponse(
  { engine, state: served, serverName }: HandshakeDeps,
  { stored, servers }: AcceptedEvent,
  { omitMembers, around }: SendJoinResponseOptions,
): Promise<Reply> {
  const before = await engine.stateAt(stored, 'before');
  if (!before) throw new Error('The state before the join is unknown');
  const isIncluded = omitMembers
    ? await stateWithoutMembers(before, engine, stored.event.sender)
    : () => true;
  const state = [...before].filter(([key]) => isIncluded(key)).map(([, nid]) => nid);
  const chain = await engine.authChain([...state, stored.nid]);
  const sent = new Set(state);
  const authChain = omitMembers ? chain.filter((nid) => !sent.has(nid)) : chain;
  const fields = {
    origin: JSON.stringify(serverName),
    event: JSON.stringify(stored.event.pdu),
    members_omitted: JSON.stringify(omitMembers),
    ...(omitMembers && { servers_in_room: JSON.stringify(servers) }),
  };
  const lists = { state: served.jsonOf(state), auth_chain: served.jsonOf(authChain) };
  return streamedLists(lists, { fields, ...(around && { around }) });
}

/**
 * Selects all state except for member events. In a room with neither a name nor a canonical alias, also selects the
 * member events of the heroes.
 */
async function stateWithoutMembers(
  state: ReadonlyMap<string, number>,
  engine: HandshakeDeps['engine'],
  userId: string,
): Promise<(key: string) => boolean> {
  const hasName = ['m.room.name', 'm.room.canonical_alias'].some((type) => state.has(stateMapKey(type, '')));
  const heroes = new Set(hasName ? [] : await selectRoomHeroes(state, engine, userId));
  return (key) => {
    const [type, stateKey] = splitStateMapKey(key);
    return type !== 'm.room.member' || heroes.has(stateKey);
  };
}

/** Maximum number of member events from which the heroes are chosen. */
const maxReadMembers = 50;

async function selectRoomHeroes(
  state: ReadonlyMap<string, number>,
  engine: HandshakeDeps['engine'],
  userId: string,
): Promise<readonly string[]> {
  const nids = [...state]
    .filter(([key]) => splitStateMapKey(key)[0] === 'm.room.member')
    .map(([, nid]) => nid)
    .slice(0, maxReadMembers);
  const members = [...(await engine.events.getMany(nids)).values()]
    .sort((a, b) => a.nid - b.nid)
    .map(({ event }): SummaryMember => [event.stateKey!, membershipOf(event.content)]);
  return selectHeroes(members, userId);
}
