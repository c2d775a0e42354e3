import { type Kind, markOf, type Phase, phases, type ViewerRole, type Visibility } from './scenario.ts';

/** Whose eyes, on which room. */
export interface Access {
  readonly viewer: ViewerRole;
  readonly visibility: Visibility;
}

const isMember = (viewer: ViewerRole) => viewer === 'stayed' || viewer === 'ignoring';
const hasLeft = (viewer: ViewerRole) => viewer === 'left' || viewer === 'kicked' || viewer === 'banned';

/** The room is open to everybody. */
const isWorldReadable = ({ visibility }: Access) => visibility === 'world_readable';

/** The parts of the history that a user may read. Source: client-server API, "Room History Visibility". */
export function visiblePhases(access: Access): readonly Phase[] {
  if (isWorldReadable(access)) return phases;
  const { viewer, visibility } = access;
  if (!isMember(viewer) && !hasLeft(viewer)) return [];
  return phases.filter((phase) => (phase > 0 || visibility === 'shared') && (phase < 2 || isMember(viewer)));
}

/** What of it was sent by users whom the viewer ignores and is no state. Source: "Ignoring Users". */
const isIgnored = ({ viewer }: Access, kind: Kind) =>
  viewer === 'ignoring' && !['state', 'name', 'member'].includes(kind);

const kinds: readonly Kind[] = ['root', 'reply', 'reaction', 'state', 'name', 'member', 'late', 'edit'];

/** The marks of some kinds in some parts. Nothing is said late in the first phase. */
const marks = ({ visibility }: Access, some: readonly Phase[], ofKinds: readonly Kind[]) =>
  some.flatMap((phase) =>
    ofKinds
      .filter((kind) => phase > 0 || (kind !== 'late' && kind !== 'edit'))
      .map((kind) => markOf(visibility, phase, kind)),
  );

const notIgnored = (access: Access, ofKinds = kinds) => ofKinds.filter((kind) => !isIgnored(access, kind));

/** Everything that the viewer may read of the history. */
export const readableHistory = (access: Access) => marks(access, visiblePhases(access), notIgnored(access));

/**
 * What a sync tells of: of what happened while the viewer was there or before, and the state. What was said of it
 * later comes with it if the viewer may read that.
 */
export function syncedHistory(access: Access): string[] {
  const isPast = hasLeft(access.viewer) || access.viewer === 'declined';
  if (!isMember(access.viewer) && !isPast) return [];
  return [...timelineMarks(access), ...stateForMembers(access)];
}

function timelineMarks(access: Access): string[] {
  const seen = visiblePhases(access).filter((phase) => phase < 2 || isMember(access.viewer));
  const later = isWorldReadable(access) ? marks(access, [2], notIgnored(access, ['late', 'edit'])) : [];
  return [...marks(access, seen, notIgnored(access)), ...later];
}

/** What the old event stream tells of: what happened while the viewer was there or before. */
export const eventStreamHistory = (access: Access) =>
  isMember(access.viewer) || hasLeft(access.viewer) ? timelineMarks(access) : [];

/** Events that are found by their words. */
export function searchResults(access: Access): string[] {
  if (!isMember(access.viewer) && !hasLeft(access.viewer)) return [];
  return marks(access, visiblePhases(access), notIgnored(access, ['root', 'reply', 'late', 'edit']));
}

/** The state of members, and as it was when they went of those who have been members. */
export function stateForMembers(access: Access): string[] {
  if (isMember(access.viewer)) return stateUpTo(access, 2);
  return hasLeft(access.viewer) ? stateUpTo(access, 1) : [];
}

/** The state that a user may ask for: of an open room as it is now, also by those who have been in it. */
export const readableState = (access: Access) =>
  isWorldReadable(access) ? stateUpTo(access, 2) : stateForMembers(access);

/** Names were replaced: only the last one is state. */
const stateUpTo = (access: Access, last: Phase) => [
  ...marks(access, phases.slice(0, last + 1), ['state', 'member']),
  markOf(access.visibility, last, 'name'),
];

/** What relates to the roots that the viewer may see. */
export function relatedEvents(access: Access): string[] {
  const seen = visiblePhases(access);
  const toFirst = seen.includes(0) ? marks(access, seen, ['late', 'edit']) : [];
  return access.viewer === 'ignoring' ? [] : [...marks(access, seen, ['reply', 'reaction']), ...toFirst];
}

/** Roots of threads, with the last answer and the last edit that the viewer may see. */
export function threadList(access: Access): string[] {
  if (access.viewer === 'ignoring') return [];
  const seen = visiblePhases(access);
  const last = seen.at(-1) ?? 0;
  return seen.flatMap((phase) => {
    const news: readonly Kind[] = phase === 0 && last > 0 ? ['late', 'edit'] : ['reply'];
    return [markOf(access.visibility, phase, 'root'), ...marks(access, phase === 0 ? [last] : [phase], news)];
  });
}

/** What has notified the user: messages since they came, but for edits. */
export const notifications = (access: Access) =>
  access.viewer === 'stayed' ? marks(access, [1, 2], ['root', 'reply', 'late']) : [];

/** The name that the room has now. */
const currentName = ({ visibility }: Access) => [markOf(visibility, 2, 'name')];

/** Who may know what the room is called: those inside, those who were asked in, and everybody if it is open. */
export const summaryName = (access: Access) =>
  isMember(access.viewer) || access.viewer === 'invited' || isWorldReadable(access)
    ? currentName(access)
    : [];

/** The name that the room had when the viewers came: it is state before the phase of the history that they see. */
export const nameAtJoin = (access: Access) =>
  stateForMembers(access).length === 0 ? [] : [markOf(access.visibility, 0, 'name')];

/** What those are told who are asked in, the name of now, and who ask, the name when they did. */
export function strippedStateName({ viewer, visibility }: Access): string[] {
  if (viewer === 'invited') return [markOf(visibility, 2, 'name')];
  return viewer === 'knocking' ? [markOf(visibility, 1, 'name')] : [];
}

/** The first event of each phase that may be found by its time. */
export const firstEventsOfPhases = (access: Access) =>
  marks(access, visiblePhases(access), [access.viewer === 'ignoring' ? 'state' : 'root']);

/** Those who are in the room now. */
export const onlyForMembers = (access: Access, what: readonly string[]) =>
  isMember(access.viewer) ? [...what] : [];

/** Source: client-server API, `GET /rooms/{roomId}/aliases`. */
export const mayListAliases = (access: Access) =>
  isMember(access.viewer) || (isWorldReadable(access) && access.viewer !== 'guest');
