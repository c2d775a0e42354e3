import { compileRoomEventFilter } from '../filters/index.ts';
import type { ClientEvent, JsonObject } from '../protocol/index.ts';
import type { Rooms, Signalled, Viewer } from '../rooms/index.ts';
import { highlightsOf } from './highlights.ts';
import { type Match, type Matches, type MatchesRequest, MatchFinder } from './matches.ts';
import { ResultContexts } from './result-context.ts';
import type { SearchIndex } from './search-index.ts';
import { decodeSearchPlace, encodeSearchPlace } from './search-token.ts';
import { type SearchKey, searchedText, searchKeys } from './searched-text.ts';

export type GroupKey = 'room_id' | 'sender';

/** The criteria for room events of a request. */
export interface RoomEventsCriteria {
  readonly search_term: string;
  readonly keys?: readonly SearchKey[];
  readonly filter?: object;
  readonly order_by?: 'recent' | 'rank';
  readonly event_context?: {
    readonly before_limit?: number;
    readonly after_limit?: number;
    readonly include_profile?: boolean;
  };
  readonly include_state?: boolean;
  readonly groupings?: { readonly group_by?: readonly { readonly key?: GroupKey }[] };
}

export interface SearchDeps {
  readonly rooms: Pick<Rooms, 'engine' | 'clientEvents' | 'stateReader'>;
  readonly index: SearchIndex;
}

/** Number of results on a page when the request sets no limit. */
const defaultLimit = 10;

/** Maximum number of results on a page. */
const maxResults = 50;

/** Maximum number of latest matches that are ranked by relevance. */
const maxRanked = 500;

/** Maximum number of matches that are counted. */
const maxCounted = 500;

/** Number of events on each side of a result when the request sets no limit. */
const defaultContext = 5;

/** Maximum number of events on each side of a result. */
const maxContext = 20;

/** Searches events in the rooms of a user. Source: client-server API, "Server Side Search". */
export class Search {
  readonly #deps: SearchDeps;
  readonly #finder: MatchFinder;
  readonly #contexts: ResultContexts;

  constructor(deps: SearchDeps) {
    this.#deps = deps;
    const { engine, clientEvents } = deps.rooms;
    this.#finder = new MatchFinder({ ...deps, engine, relations: clientEvents.relations });
    this.#contexts = new ResultContexts(deps.rooms);
  }

  /**
   * Searches the events of the viewer's rooms.
   * @param token `next_batch` of an earlier response
   * @param waiting the client's request: when it ends, the server stops waiting for the members of rooms with partial
   * state
   * @returns the result category `room_events`
   * @throws MatrixError M_INVALID_PARAM for an invalid token, M_BAD_JSON for an invalid filter
   */
  async roomEvents(
    viewer: Viewer,
    criteria: RoomEventsCriteria,
    token: string | undefined,
    waiting?: Signalled,
  ): Promise<object> {
    const filter = compileRoomEventFilter(criteria.filter ?? {});
    const request: MatchesRequest = {
      userId: viewer.userId,
      term: criteria.search_term,
      keys: criteria.keys ?? searchKeys,
      filter,
      place: token === undefined ? {} : decodeSearchPlace(token),
      limit: Math.max(1, Math.min(filter.limit ?? defaultLimit, maxResults)),
    };
    const page = criteria.order_by === 'recent' ? await this.#latest(request) : await this.#best(request);
    return {
      count: page.count,
      highlights: highlightsOf(
        criteria.search_term,
        page.matches.map(({ stored }) => searchedText(stored, request.keys) ?? ''),
      ),
      results: await this.#results(viewer, criteria, page.matches),
      ...(criteria.include_state ? { state: await this.#state(viewer, page.matches, waiting) } : undefined),
      ...(criteria.groupings && { groups: groupsOf(criteria.groupings, page) }),
      ...(page.next === undefined ? undefined : { next_batch: page.next }),
    };
  }

  /** Returns a page of matches, latest first. Finds further matches too, because clients show the total count. */
  async #latest(request: MatchesRequest): Promise<ResultPage> {
    const { place, limit } = request;
    const skipped = Math.max(0, place.skip ?? 0);
    const latest: Matches = await this.#finder.find({ ...request, limit: maxCounted });
    const matches = latest.matches.slice(0, limit);
    // A full page has a token even when it is the last one, as in the responses of other servers.
    const before = matches.length === limit ? matches.at(-1)?.stored.nid : latest.before;
    const skip = skipped + matches.length;
    const next = before === undefined ? undefined : encodeSearchPlace({ ...place, before, skip });
    return { matches, count: skipped + latest.matches.length, next, before };
  }

  /** Returns a page of the most relevant of the latest matches. */
  async #best(request: MatchesRequest): Promise<ResultPage> {
    const { place, limit } = request;
    const skip = Math.max(0, place.skip ?? 0);
    const { matches } = await this.#finder.find({ ...request, limit: maxRanked });
    const ranked = matches.toSorted((a, b) => b.rank - a.rank || b.stored.nid - a.stored.nid);
    const isFull = ranked.length >= skip + limit;
    const next = isFull ? encodeSearchPlace({ ...place, skip: skip + limit }) : undefined;
    return { matches: ranked.slice(skip, skip + limit), count: ranked.length, next, before: undefined };
  }

  async #results(
    viewer: Viewer,
    { event_context: context }: RoomEventsCriteria,
    matches: readonly Match[],
  ): Promise<object[]> {
    const events = await this.#deps.rooms.clientEvents.render(matches, viewer);
    const limitOf = (limit = defaultContext) => Math.max(0, Math.min(limit, maxContext));
    const request = {
      beforeLimit: limitOf(context?.before_limit),
      afterLimit: limitOf(context?.after_limit),
      includeProfile: context?.include_profile ?? false,
    };
    const results: object[] = [];
    for (const [index, match] of matches.entries()) {
      const around = context && (await this.#contexts.around(match, viewer, request));
      results.push({ rank: match.rank, result: events[index], ...(around && { context: around }) });
    }
    return results;
  }

  async #state(
    viewer: Viewer,
    matches: readonly Match[],
    waiting: Signalled | undefined,
  ): Promise<Record<string, ClientEvent[]>> {
    const state: Record<string, ClientEvent[]> = {};
    for (const roomId of new Set(matches.map(({ stored }) => stored.event.roomId))) {
      state[roomId] = await this.#deps.rooms.stateReader.all(viewer, roomId, waiting);
    }
    return state;
  }
}

interface ResultPage {
  readonly matches: readonly Match[];
  /** Number of matches on all pages, counted up to a maximum. */
  readonly count: number;
  /** Token of the next page. */
  readonly next: string | undefined;
  /** The nid below which the next page begins, for results in the order of time. */
  readonly before: number | undefined;
}

function groupsOf(
  { group_by: keys = [] }: NonNullable<RoomEventsCriteria['groupings']>,
  { matches, before }: ResultPage,
): JsonObject {
  const groups: Record<string, JsonObject> = {};
  for (const { key } of keys) {
    if (key === undefined) continue;
    const members = Map.groupBy(matches, ({ stored: { event } }) =>
      key === 'room_id' ? event.roomId : event.sender,
    );
    groups[key] = Object.fromEntries(
      [...members].map(([value, ofGroup], order) => [
        value,
        {
          order,
          results: ofGroup.map(({ stored }) => stored.event.eventId),
          ...(before === undefined ? undefined : { next_batch: nextOfGroup(key, value, before) }),
        },
      ]),
    );
  }
  return groups;
}

const nextOfGroup = (key: GroupKey, value: string, before: number): string =>
  encodeSearchPlace(key === 'room_id' ? { before, roomId: value } : { before, sender: value });
