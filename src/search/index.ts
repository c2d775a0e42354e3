/** Search: full text search of events. */
export { searchMigrations } from './migrations.ts';
export { searchRoomRows } from './room-rows.ts';
export { searchRoutes } from './routes.ts';
export { Search } from './search.ts';
export { SearchIndex } from './search-index.ts';
