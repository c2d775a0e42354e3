/** State resolution of every room version: computes the state of a room whose history forked. */
export { authChainDifference, conflictedSubgraph } from './auth-chains.ts';
export * from './resolve.ts';
export * from './source.ts';
