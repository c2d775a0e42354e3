import { type SelectQueryBuilder, sql } from 'kysely';
import { foldText, type Reader } from '../../kernel/database/index.ts';
import type { PublishedRooms } from '../../rooms/index.ts';
import type { DirectoryTables } from '../tables.ts';
import type { ListPlace } from './list-token.ts';

/** A room in the list. */
export type ListedRoom = DirectoryTables['room_stats'];

/** Selects rooms of the list. */
export interface ListFilter {
  readonly searchTerm: string | undefined;
  /** `null` stands for rooms without a type. */
  readonly roomTypes: readonly (string | null)[] | undefined;
  /**
   * Selects the list of an application service's network by its id; empty: the list of the server itself; absent: all
   * lists.
   */
  readonly network: string | undefined;
  /** Only rooms that federate. */
  readonly federatableOnly: boolean;
}

type Query<O> = SelectQueryBuilder<DirectoryTables, 'room_stats', O>;

/** Join rules that let users without an invite join or knock. */
const openRules = ['public', 'knock', 'knock_restricted'];

/**
 * Reads a page of the list. The rooms with the most members come first, even when the page is read backwards from
 * `place`.
 */
export async function readList(
  scanner: Reader<DirectoryTables>,
  published: PublishedRooms,
  filter: ListFilter,
  { place, limit }: { place: ListPlace | undefined; limit: number },
): Promise<ListedRoom[]> {
  const backward = place?.direction === 'backward';
  const order = backward ? 'asc' : 'desc';
  let query = listed(scanner.selectFrom('room_stats').selectAll(), published, filter)
    .orderBy('joined_members', order)
    .orderBy('room_id', order)
    .limit(limit);
  if (filter.searchTerm !== undefined) {
    query = query.where(sql<boolean>`search_text like ${likePattern(filter.searchTerm)} escape '!'`);
  }
  if (place) {
    query = query.where(({ eb, refTuple, tuple }) =>
      eb(
        refTuple('joined_members', 'room_id'),
        backward ? '>' : '<',
        tuple(place.joinedMembers, place.roomId),
      ),
    );
  }
  const rows = await query.execute();
  return backward ? rows.reverse() : rows;
}

/** Counts the rooms of the list, regardless of the search term. */
export async function countList(
  scanner: Reader<DirectoryTables>,
  published: PublishedRooms,
  filter: ListFilter,
): Promise<number> {
  const query = scanner.selectFrom('room_stats').select(({ fn }) => fn.countAll<number>().as('count'));
  return (await listed(query, published, filter).executeTakeFirstOrThrow()).count;
}

/**
 * Selects the published rooms that match the filter, apart from its search term. Excludes rooms without members, and
 * rooms that users without an invite can neither join, knock on nor read.
 */
function listed<O>(query: Query<O>, published: PublishedRooms, filter: ListFilter): Query<O> {
  const { roomTypes, network, federatableOnly } = filter;
  let result = query
    .where('room_id', 'in', published.roomIds(network))
    .where('joined_members', '>', 0)
    .where(({ eb, or }) =>
      or([eb('join_rule', 'in', openRules), eb('history_visibility', '=', 'world_readable')]),
    );
  if (federatableOnly) result = result.where('federatable', '=', 1);
  if (roomTypes) {
    const types = roomTypes.filter((type) => type !== null);
    result = result.where(({ eb, or }) =>
      or([
        ...(types.length > 0 ? [eb('room_type', 'in', types)] : []),
        ...(roomTypes.includes(null) ? [eb('room_type', 'is', null)] : []),
      ]),
    );
  }
  return result;
}

const likePattern = (term: string): string => `%${foldText(term).replace(/[!%_]/g, '!$&')}%`;
