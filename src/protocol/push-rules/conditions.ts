import { foldCase } from '../globs/fold-case.ts';
import {
  compileGlob,
  compileWordGlob,
  containsAsWords,
  containsWord,
  isShortLiteral,
  SHORT_GLOB_LENGTH,
} from '../globs/glob.ts';
import { isJsonObject, type JsonObject, type JsonPrimitive, type JsonValue } from '../json.ts';
import { type PropertyPath, parsePropertyPath } from './property-path.ts';
import type { PushEvent, PushMember } from './push-event.ts';

/** Whether an event matches a condition of a member's rule. */
export type PushMatcher = (event: PushEvent, member: PushMember) => boolean;

const BODY_KEY = 'content.body';
const BODY_PATH = parsePropertyPath(BODY_KEY);
const MEMBER_COUNT = /^(==|<=|>=|<|>)?([0-9]+)$/;

/**
 * The kind of condition that MSC4306 adds, under its unstable name: whether the member follows the thread of the event.
 */
export const THREAD_SUBSCRIPTION = 'io.element.msc4306.thread_subscription';

const COMPARISONS: Readonly<Record<string, (count: number, limit: number) => boolean>> = {
  '==': (count, limit) => count === limit,
  '<': (count, limit) => count < limit,
  '>': (count, limit) => count > limit,
  '<=': (count, limit) => count <= limit,
  '>=': (count, limit) => count >= limit,
};

/** Compilers by kind of condition; they return `undefined` for malformed conditions, which never match. */
const COMPILERS: ReadonlyMap<unknown, (condition: JsonObject) => PushMatcher | undefined> = new Map([
  ['event_match', ({ key, pattern }: JsonObject) => compileEventMatch(key, pattern)],
  ['event_property_is', compilePropertyIs],
  ['event_property_contains', compilePropertyContains],
  ['contains_display_name', () => containsDisplayName],
  ['room_member_count', compileMemberCount],
  ['sender_notification_permission', compileNotificationPermission],
  [THREAD_SUBSCRIPTION, compileThreadSubscription],
]);

/**
 * Compiles a condition; `undefined` if it cannot match any event, because it is malformed or of a kind that
 * this server does not know.
 * Source: client-server API, "Conditions".
 */
export function compileCondition(condition: JsonValue): PushMatcher | undefined {
  return isJsonObject(condition) ? COMPILERS.get(condition['kind'])?.(condition) : undefined;
}

/** Compiles the pattern of a `content` rule, which searches the body of the message. */
export const compileBodyMatch = (pattern: JsonValue | undefined): PushMatcher | undefined =>
  compileEventMatch(BODY_KEY, pattern);

function compileEventMatch(
  key: JsonValue | undefined,
  pattern: JsonValue | undefined,
): PushMatcher | undefined {
  if (typeof key !== 'string' || typeof pattern !== 'string') return undefined;
  const path = parsePropertyPath(key);
  const folded = foldCase(pattern);
  if (isPathOfBody(path) && isShortLiteral(folded)) return (event) => bodyContainsFolded(event, folded);
  const matches = isPathOfBody(path) ? compileWordGlob(folded) : compileGlob(folded);
  const stepsPerCharacter = searchStepsPerCharacter(pattern, isPathOfBody(path));
  const isComparison = !isPathOfBody(path) && !/[*?]/.test(pattern);
  return (event) => {
    const text = event.foldedString(key, path);
    if (text === undefined) return false;
    return (isComparison || event.spendSearchSteps(text.length * stepsPerCharacter)) && matches(text);
  };
}

/**
 * Returns how many search steps a pattern takes for each character of the text: see `SEARCH_BUDGET`, `compileGlob` and
 * `compileWordGlob`.
 */
function searchStepsPerCharacter(pattern: string, inBody: boolean): number {
  return !inBody && pattern.length <= SHORT_GLOB_LENGTH ? pattern.length : (pattern.length >>> 5) + 1;
}

const isPathOfBody = (path: PropertyPath): boolean =>
  path.length === BODY_PATH.length && path.every((name, i) => name === BODY_PATH[i]);

/**
 * Whether a value is canonical JSON, and neither an object nor an array. Fractions and integers outside of the safe
 * range are not canonical.
 */
function isComparable(value: JsonValue | undefined): value is JsonPrimitive {
  return (
    value === null || typeof value === 'string' || typeof value === 'boolean' || Number.isSafeInteger(value)
  );
}

function compilePropertyIs({ key, value }: JsonObject): PushMatcher | undefined {
  if (typeof key !== 'string' || !isComparable(value)) return undefined;
  const path = parsePropertyPath(key);
  return (event) => event.property(path) === value;
}

function compilePropertyContains({ key, value }: JsonObject): PushMatcher | undefined {
  if (typeof key !== 'string' || !isComparable(value)) return undefined;
  const path = parsePropertyPath(key);
  return (event) => {
    const property = event.property(path);
    return Array.isArray(property) && event.spendSearchSteps(property.length) && property.includes(value);
  };
}

/** Whether the body contains the member's display name between word boundaries. */
export function containsDisplayName(event: PushEvent, { displayName }: PushMember): boolean {
  return displayName !== undefined && displayName !== '' && bodyContains(event, displayName);
}

/** Characters of a text that are compared with a short literal in the time of one search step. */
const charactersPerStep = 8;

/** Whether the body contains a literal between word boundaries, ignoring case. */
export const bodyContains = (event: PushEvent, literal: string): boolean =>
  bodyContainsFolded(event, foldCase(literal));

/**
 * Whether the case-folded body contains a case-folded literal between word boundaries. The search for a short literal
 * spends one search step for each eight characters of the body, and one for each occurrence of the literal.
 */
function bodyContainsFolded(event: PushEvent, literal: string): boolean {
  const body = event.foldedString(BODY_KEY, BODY_PATH);
  if (body === undefined) return false;
  if (literal.length > SHORT_GLOB_LENGTH)
    return (
      event.spendSearchSteps(body.length * searchStepsPerCharacter(literal, true)) &&
      containsAsWords(body, literal)
    );
  const canSearch = event.spendSearchSteps(Math.ceil(body.length / charactersPerStep));
  return canSearch && containsWord(body, literal, () => event.spendSearchSteps(1));
}

function compileMemberCount({ is }: JsonObject): PushMatcher | undefined {
  const [, operator = '==', digits] = (typeof is === 'string' && MEMBER_COUNT.exec(is)) || [];
  if (digits === undefined) return undefined;
  const compare = COMPARISONS[operator]!;
  const limit = Number(digits);
  return ({ room }) => compare(room.memberCount, limit);
}

function compileNotificationPermission({ key }: JsonObject): PushMatcher | undefined {
  if (typeof key !== 'string') return undefined;
  return ({ room }) => room.senderMayNotify(key);
}

function compileThreadSubscription({ subscribed }: JsonObject): PushMatcher | undefined {
  return typeof subscribed === 'boolean' ? inThread(subscribed) : undefined;
}

/**
 * Matches events in threads that the member follows or, if not `isFollowed`, in threads that the member does not
 * follow. Source: MSC4306, "New Push Rules".
 */
export function inThread(isFollowed: boolean): PushMatcher {
  return ({ room: { threadRoot } }, { followedThreads }) =>
    threadRoot !== undefined && (followedThreads?.has(threadRoot) ?? false) === isFollowed;
}
