/** Application services: transactions, queries, pings and third-party networks. */
export { type Appservices, openAppservices } from './open.ts';
export { openServiceRequests, type ServiceRequests } from './requests/open.ts';
