export {
  isVisibleToServer,
  isVisibleToUser,
  type ServerVisibilityFacts,
  type UserVisibilityFacts,
  type VisibilitySubject,
} from './event-visibility.ts';
export {
  type HistoryVisibility,
  historyVisibilityOf,
  isMembership,
  type Membership,
  membershipOf,
} from './history-visibility.ts';
