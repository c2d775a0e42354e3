/** Search: full text search of events. */

export { searchMigrations } from './migrations.ts';
export { openSearch } from './open.ts';
export { Search } from './search.ts';
export { SearchIndex } from './search-index.ts';
