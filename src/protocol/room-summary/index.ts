export { type SummaryMember, selectHeroes } from './heroes.ts';
export { type RoomFacts, roomFactsOf, type StateContentLookup, topicTexts } from './room-facts.ts';
export { type RoomSummaryFacts, roomSummaryOf } from './room-summary.ts';
