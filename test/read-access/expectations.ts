import { type Kind, markOf, type Phase, phases, type ViewerRole, type Visibility } from './scenario.ts';

/** A viewer and the history visibility of the room. */
export interface Access {
  readonly viewer: ViewerRole;
  readonly visibility: Visibility;
}

const isMember = (viewer: ViewerRole) => viewer === 'stayed' || viewer === 'ignoring';
const hasLeft = (viewer: ViewerRole) => viewer === 'left' || viewer === 'kicked' || viewer === 'banned';

const isWorldReadable = ({ visibility }: Access) => visibility === 'world_readable';

/** The phases whose history a viewer may read. Source: client-server API, "Room History Visibility". */
export function visiblePhases(access: Access): readonly Phase[] {
  if (isWorldReadable(access)) return phases;
  const { viewer, visibility } = access;
  if (!isMember(viewer) && !hasLeft(viewer)) return [];
  return phases.filter((phase) => (phase > 0 || visibility === 'shared') && (phase < 2 || isMember(viewer)));
}

/**
 * Whether events of a kind are hidden because the viewer ignores their sender. State events are always shown. Source:
 * client-server API, "Ignoring Users".
 */
const isIgnored = ({ viewer }: Access, kind: Kind) =>
  viewer === 'ignoring' && !['state', 'name', 'member'].includes(kind);

const kinds: readonly Kind[] = ['root', 'reply', 'reaction', 'state', 'name', 'member', 'late', 'edit'];

/** The marks of these kinds in these phases. The first phase has no late events and no edits. */
const marks = ({ visibility }: Access, ofPhases: readonly Phase[], ofKinds: readonly Kind[]) =>
  ofPhases.flatMap((phase) =>
    ofKinds
      .filter((kind) => phase > 0 || (kind !== 'late' && kind !== 'edit'))
      .map((kind) => markOf(visibility, phase, kind)),
  );

const notIgnored = (access: Access, ofKinds = kinds) => ofKinds.filter((kind) => !isIgnored(access, kind));

/** All events of the history that the viewer may read. */
export const readableHistory = (access: Access) => marks(access, visiblePhases(access), notIgnored(access));

/**
 * The events that the viewer may request by their ids: also those since an invite, where the history visibility is
 * `invited`. Source: client-server API, "Room History Visibility".
 */
export const readableEvents = (access: Access) =>
  access.viewer === 'invited' && access.visibility === 'invited'
    ? marks(access, [2], kinds)
    : readableHistory(access);

/**
 * What a sync shows: the state, and the history up to when the viewer left. Later relations of the shown events are
 * bundled if the viewer may read them.
 */
export function syncedHistory(access: Access): string[] {
  const isPast = hasLeft(access.viewer) || access.viewer === 'declined';
  if (!isMember(access.viewer) && !isPast) return [];
  return [...timelineMarks(access), ...stateForMembers(access)];
}

function timelineMarks(access: Access): string[] {
  const visible = visiblePhases(access).filter((phase) => phase < 2 || isMember(access.viewer));
  const later = isWorldReadable(access) ? marks(access, [2], notIgnored(access, ['late', 'edit'])) : [];
  return [...marks(access, visible, notIgnored(access)), ...later];
}

/** What `/events` shows: the history up to when the viewer left. */
export const eventStreamHistory = (access: Access) =>
  isMember(access.viewer) || hasLeft(access.viewer) ? timelineMarks(access) : [];

/** Events that the viewer finds by full-text search. */
export function searchResults(access: Access): string[] {
  if (!isMember(access.viewer) && !hasLeft(access.viewer)) return [];
  return marks(access, visiblePhases(access), notIgnored(access, ['root', 'reply', 'late', 'edit']));
}

/** The current state for members; for former members, the state when they left. */
export function stateForMembers(access: Access): string[] {
  if (isMember(access.viewer)) return stateUpTo(access, 2);
  return hasLeft(access.viewer) ? stateUpTo(access, 1) : [];
}

/**
 * The state that a viewer may request. In a world-readable room it is the current state, also for former members.
 */
export const readableState = (access: Access) =>
  isWorldReadable(access) ? stateUpTo(access, 2) : stateForMembers(access);

/**
 * The marks of state events up to a phase. Of the room names only the last one is state, because it replaces the
 * others.
 */
const stateUpTo = (access: Access, last: Phase) => [
  ...marks(access, phases.slice(0, last + 1), ['state', 'member']),
  markOf(access.visibility, last, 'name'),
];

/** The relations to root events, as far as the viewer may see the relations. */
export function relatedEvents(access: Access): string[] {
  const visible = visiblePhases(access);
  const toFirst = visible.includes(0) ? marks(access, visible, ['late', 'edit']) : [];
  return access.viewer === 'ignoring' ? [] : [...marks(access, visible, ['reply', 'reaction']), ...toFirst];
}

/** Thread roots with the latest reply and the latest edit that the viewer may see. */
export function threadList(access: Access): string[] {
  if (access.viewer === 'ignoring') return [];
  const visible = visiblePhases(access);
  const last = visible.at(-1) ?? 0;
  return visible.flatMap((phase) => {
    const newKinds: readonly Kind[] = phase === 0 && last > 0 ? ['late', 'edit'] : ['reply'];
    return [
      markOf(access.visibility, phase, 'root'),
      ...marks(access, phase === 0 ? [last] : [phase], newKinds),
    ];
  });
}

/** Events in `/notifications`: messages after the viewer joined, except edits. */
export const notifications = (access: Access) =>
  access.viewer === 'stayed' ? marks(access, [1, 2], ['root', 'reply', 'late']) : [];

/** The current name of the room. */
const currentName = ({ visibility }: Access) => [markOf(visibility, 2, 'name')];

/** The name in room summaries: for members, invited users, and all viewers of a world-readable room. */
export const summaryName = (access: Access) =>
  isMember(access.viewer) || access.viewer === 'invited' || isWorldReadable(access)
    ? currentName(access)
    : [];

/** The room's name when the viewer joined: the name in the state at the start of the timeline. */
export const nameAtJoin = (access: Access) =>
  stateForMembers(access).length === 0 ? [] : [markOf(access.visibility, 0, 'name')];

/**
 * The name in stripped state: for invited users the current name, for knocking users the name at the time of the knock.
 */
export function strippedStateName({ viewer, visibility }: Access): string[] {
  if (viewer === 'invited') return [markOf(visibility, 2, 'name')];
  return viewer === 'knocking' ? [markOf(visibility, 1, 'name')] : [];
}

/** The first event of each phase that `timestamp_to_event` may return. */
export const firstEventsOfPhases = (access: Access) =>
  marks(access, visiblePhases(access), [access.viewer === 'ignoring' ? 'state' : 'root']);

/** The marks if the viewer is a member of the room, otherwise none. */
export const onlyForMembers = (access: Access, what: readonly string[]) =>
  isMember(access.viewer) ? [...what] : [];

/**
 * Whether the viewer may list the room's aliases. Source: client-server API, `GET /rooms/{roomId}/aliases`.
 */
export const mayListAliases = (access: Access) =>
  isMember(access.viewer) || (isWorldReadable(access) && access.viewer !== 'guest');
