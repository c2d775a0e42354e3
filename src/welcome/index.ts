/** What a browser shows at `/`. */
export { type WelcomeOptions, welcomeRoute, welcomeTemplates } from './routes.ts';
