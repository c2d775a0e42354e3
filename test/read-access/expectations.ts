import { type Kind, markOf, type Part, parts, type Viewer, type Visibility } from './scenario.ts';

/** Whose eyes, on which room. */
export interface Look {
  readonly viewer: Viewer;
  readonly visibility: Visibility;
}

const isIn = (viewer: Viewer) => viewer === 'stayed' || viewer === 'ignoring';
const hasGone = (viewer: Viewer) => viewer === 'left' || viewer === 'kicked' || viewer === 'banned';

/** The room is open to everybody. */
const isOpen = ({ visibility }: Look) => visibility === 'world_readable';

/** The parts of the history that a user may read. Source: client-server API, "Room History Visibility". */
export function partsSeen(look: Look): readonly Part[] {
  if (isOpen(look)) return parts;
  const { viewer, visibility } = look;
  if (!isIn(viewer) && !hasGone(viewer)) return [];
  return parts.filter((part) => (part > 0 || visibility === 'shared') && (part < 2 || isIn(viewer)));
}

/** What of it was sent by users whom the viewer ignores and is no state. Source: "Ignoring Users". */
const isIgnored = ({ viewer }: Look, kind: Kind) =>
  viewer === 'ignoring' && !['state', 'name', 'member'].includes(kind);

const kinds: readonly Kind[] = ['root', 'reply', 'reaction', 'state', 'name', 'member', 'late', 'edit'];

/** The marks of some kinds in some parts. Nothing is said late in the first part. */
const marks = ({ visibility }: Look, some: readonly Part[], ofKinds: readonly Kind[]) =>
  some.flatMap((part) =>
    ofKinds
      .filter((kind) => part > 0 || (kind !== 'late' && kind !== 'edit'))
      .map((kind) => markOf(visibility, part, kind)),
  );

const unignored = (look: Look, ofKinds = kinds) => ofKinds.filter((kind) => !isIgnored(look, kind));

/** Everything that the viewer may read of the history. */
export const history = (look: Look) => marks(look, partsSeen(look), unignored(look));

/**
 * What a sync tells of: of what happened while the viewer was there or before, and the state. What was said of it
 * later comes with it if the viewer may read that.
 */
export function historyOfSync(look: Look): string[] {
  const isPast = hasGone(look.viewer) || look.viewer === 'declined';
  if (!isIn(look.viewer) && !isPast) return [];
  return [...happenedMeanwhile(look), ...memberState(look)];
}

function happenedMeanwhile(look: Look): string[] {
  const seen = partsSeen(look).filter((part) => part < 2 || isIn(look.viewer));
  const later = isOpen(look) ? marks(look, [2], unignored(look, ['late', 'edit'])) : [];
  return [...marks(look, seen, unignored(look)), ...later];
}

/** What the old event stream tells of: what happened while the viewer was there or before. */
export const historyOfStream = (look: Look) =>
  isIn(look.viewer) || hasGone(look.viewer) ? happenedMeanwhile(look) : [];

/** Events that are found by their words. */
export function found(look: Look): string[] {
  if (!isIn(look.viewer) && !hasGone(look.viewer)) return [];
  return marks(look, partsSeen(look), unignored(look, ['root', 'reply', 'late', 'edit']));
}

/** The state of members, and as it was when they went of those who have been members. */
export function memberState(look: Look): string[] {
  if (isIn(look.viewer)) return stateUpTo(look, 2);
  return hasGone(look.viewer) ? stateUpTo(look, 1) : [];
}

/** The state that a user may ask for: of an open room as it is now, also by those who have been in it. */
export const state = (look: Look) => (isOpen(look) ? stateUpTo(look, 2) : memberState(look));

/** Names were replaced: only the last one is state. */
const stateUpTo = (look: Look, last: Part) => [
  ...marks(look, parts.slice(0, last + 1), ['state', 'member']),
  markOf(look.visibility, last, 'name'),
];

/** What relates to the roots that the viewer may see. */
export function related(look: Look): string[] {
  const seen = partsSeen(look);
  const toFirst = seen.includes(0) ? marks(look, seen, ['late', 'edit']) : [];
  return look.viewer === 'ignoring' ? [] : [...marks(look, seen, ['reply', 'reaction']), ...toFirst];
}

/** Roots of threads, with the last answer and the last edit that the viewer may see. */
export function threads(look: Look): string[] {
  if (look.viewer === 'ignoring') return [];
  const seen = partsSeen(look);
  const last = seen.at(-1) ?? 0;
  return seen.flatMap((part) => {
    const news: readonly Kind[] = part === 0 && last > 0 ? ['late', 'edit'] : ['reply'];
    return [markOf(look.visibility, part, 'root'), ...marks(look, part === 0 ? [last] : [part], news)];
  });
}

/** What has notified the user: messages since they came, but for edits. */
export const notified = (look: Look) =>
  look.viewer === 'stayed' ? marks(look, [1, 2], ['root', 'reply', 'late']) : [];

/** The name that the room has now. */
const nameNow = ({ visibility }: Look) => [markOf(visibility, 2, 'name')];

/** Who may know what the room is called: those inside, those who were asked in, and everybody if it is open. */
export const nameForSummary = (look: Look) =>
  isIn(look.viewer) || look.viewer === 'invited' || isOpen(look) ? nameNow(look) : [];

/** The name that the room had when the viewers came: it is state before the part of the history that they see. */
export const nameAtJoin = (look: Look) =>
  memberState(look).length === 0 ? [] : [markOf(look.visibility, 0, 'name')];

/** What those are told who are asked in, the name of now, and who ask, the name when they did. */
export function nameBefore({ viewer, visibility }: Look): string[] {
  if (viewer === 'invited') return [markOf(visibility, 2, 'name')];
  return viewer === 'knocking' ? [markOf(visibility, 1, 'name')] : [];
}

/** The first event of each part that may be found by its time. */
export const firstOfParts = (look: Look) =>
  marks(look, partsSeen(look), [look.viewer === 'ignoring' ? 'state' : 'root']);

/** Those who are in the room now. */
export const forMembers = (look: Look, what: readonly string[]) => (isIn(look.viewer) ? [...what] : []);

/** Source: client-server API, `GET /rooms/{roomId}/aliases`. */
export const canAskForAliases = (look: Look) =>
  isIn(look.viewer) || (isOpen(look) && look.viewer !== 'guest');
