/** Filters, stored or inline, which select the events that a client receives, compiled for matching. */
export {
  compileFilter,
  compileRoomEventFilter,
  type Filter,
  noFilter,
  type RoomFilter,
} from './compile-filter.ts';
export { EventFilter, type FilteredEvent, RoomEventFilter } from './event-filter.ts';
export type { FieldSelection } from './field-selection.ts';
export { Filters } from './filters.ts';
export { filterMigrations } from './migrations.ts';
export { openFilters } from './open.ts';
export { readFilter } from './read-filter.ts';
