/** Which state a room has where its history forked: state resolution of every room version. */
export { authChainDifference, conflictedSubgraph } from './auth-chains.ts';
export * from './resolve.ts';
export * from './source.ts';
