/** Monthly active users: counts them, and limits their number. */
export { limitedRoutes } from './limited-routes.ts';
export {
  type ActiveUsers,
  type ActiveUsersDeps,
  type ActiveUsersOptions,
  openActiveUsers,
} from './open.ts';
export type { UsageLimit } from './usage-limit.ts';
