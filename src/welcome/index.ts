/** The welcome page at `/`. */
export { type WelcomeOptions, welcomeRoute, welcomeTemplates } from './routes.ts';
