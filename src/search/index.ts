/** Search: full text search of events. */

export { searchManifest } from './manifest.ts';
export { searchMigrations } from './migrations.ts';
export { searchRoutes } from './routes.ts';
export { Search } from './search.ts';
export { SearchIndex } from './search-index.ts';
