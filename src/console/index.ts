/** The console for administrators: pages that run in browsers and use the admin API. */
export { consoleRoutes } from './console-routes.ts';
