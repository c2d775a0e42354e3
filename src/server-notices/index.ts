/** Server notices: messages of the server to its users, each in a room of their own. */
export type { NoticeOptions } from './config.ts';
export { noticeRoomLeaveCheck } from './leave-check.ts';
export { serverNoticeMigrations } from './migrations.ts';
export { NoticeRoomJobs, runNoticeRoomJobs } from './notice-room-jobs.ts';
export { NoticeRooms } from './notice-rooms.ts';
export { type NoticesUser, noticesUser } from './notices-user.ts';
export { serverNoticeRoutes } from './routes.ts';
export { type NoticeManner, ServerNotices } from './server-notices.ts';
